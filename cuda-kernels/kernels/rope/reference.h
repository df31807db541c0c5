#pragma once

// One row in double precision; angles by powers, from the definition.

#include "ggml-ext-cuda-kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reference {

// ggml's angles with positions and factors in host memory.
struct angles {
    ggml_ext_cuda_rope_angles node; // its pointers are not read
    std::vector<int32_t>      positions;
    std::vector<float>        factors; // empty for 1
};

struct matrix {
    double a, b, c, d;
};

inline std::vector<double> normed(const float * x, int64_t n, double eps, const float * weight) {
    double squares = 0;
    for (int64_t i = 0; i < n; i++) {
        squares += static_cast<double>(x[i]) * x[i];
    }
    std::vector<double> y;
    for (int64_t i = 0; i < n; i++) {
        y.push_back(x[i] / std::sqrt(squares / static_cast<double>(n) + eps) * (weight ? weight[i] : 1.0));
    }
    return y;
}

// The rotation of pair i, YaRN included.
inline matrix rotation(const angles & a, int64_t d_rot, int64_t position, int64_t i) {
    const auto & n = a.node;
    const double original =
        static_cast<double>(a.positions[static_cast<std::size_t>(position)]) *
        std::pow(static_cast<double>(n.freq_base), -2.0 * static_cast<double>(i) / static_cast<double>(d_rot)) /
        (a.factors.empty() ? 1.0 : a.factors[static_cast<std::size_t>(i)]);
    double angle = original * n.freq_scale, magnitude = n.attn_factor;
    if (n.ext_factor != 0) {
        const double two_pi = 2 * std::acos(-1.0);
        const auto   pair   = [&](double turns) {
            return static_cast<double>(d_rot) * std::log(n.n_ctx_orig / (turns * two_pi)) /
                   (2 * std::log(static_cast<double>(n.freq_base)));
        };
        const double low  = std::max(0.0, std::floor(pair(n.beta_fast)));
        const double high = std::min(static_cast<double>(d_rot) - 1, std::ceil(pair(n.beta_slow)));
        const double ramp = std::clamp((static_cast<double>(i) - low) / std::max(0.001, high - low), 0.0, 1.0);
        const double mix  = (1 - ramp) * n.ext_factor;
        angle             = angle * (1 - mix) + original * mix;
        magnitude *= 1 + 0.1 * std::log(1.0 / n.freq_scale);
    }
    return {std::cos(angle) * magnitude, -std::sin(angle) * magnitude, std::sin(angle) * magnitude,
            std::cos(angle) * magnitude};
}

inline void rotate(std::vector<double> & y, const ggml_ext_cuda_rope_args & args, int64_t i, const matrix & m) {
    const bool   interleaved = args.pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED;
    const auto   first       = static_cast<std::size_t>(args.rot_first + (interleaved ? 2 * i : i));
    const auto   second      = static_cast<std::size_t>(args.rot_first + (interleaved ? 2 * i + 1 : i + args.d_rot / 2));
    const double p = y[first], q = y[second];
    y[first]  = m.a * p + m.b * q;
    y[second] = m.c * p + m.d * q;
}

} // namespace reference
