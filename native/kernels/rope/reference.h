#pragma once

// RMSNorm, weight and rotation of one row in double precision; angles by powers, not by a running product.

#include "ggml-ext-kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace reference {

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

// [[cos, -sin], [sin, cos]] of a pair, YaRN included.
inline std::vector<double> rotation(const ggml_ext_cpu_rope_angles & a, int64_t d_rot, int64_t position, int64_t i) {
    const double pi = std::acos(-1.0);
    const double original =
        static_cast<double>(position) *
        std::pow(static_cast<double>(a.freq_base), -2.0 * static_cast<double>(i) / static_cast<double>(d_rot)) /
        (a.freq_factors ? a.freq_factors[i] : 1.0f);
    double angle = original * a.freq_scale, magnitude = a.attn_factor;
    if (a.ext_factor != 0) {
        auto where = [&](double turns) {
            return static_cast<double>(d_rot) * std::log(a.n_ctx_orig / (turns * 2 * pi)) /
                   (2 * std::log(static_cast<double>(a.freq_base)));
        };
        double low  = std::max(0.0, std::floor(where(a.beta_fast)));
        double high = std::min(static_cast<double>(d_rot) - 1, std::ceil(where(a.beta_slow)));
        double ramp = std::min(1.0, std::max(0.0, (static_cast<double>(i) - low) / std::max(0.001, high - low)));
        double mix  = (1 - ramp) * a.ext_factor;
        angle       = angle * (1 - mix) + original * mix;
        magnitude *= 1 + 0.1 * std::log(1.0 / a.freq_scale);
    }
    return {std::cos(angle) * magnitude, -std::sin(angle) * magnitude, std::sin(angle) * magnitude,
            std::cos(angle) * magnitude};
}

// Rotates pair i of a row by the matrix m.
inline void
rotate(std::vector<double> & y, const ggml_ext_cpu_rope_args & args, int64_t i, const std::vector<double> & m) {
    const bool   inter = args.pairs == GGML_EXT_CPU_ROPE_INTERLEAVED;
    const auto   p     = static_cast<std::size_t>(args.rot_first + (inter ? 2 * i : i));
    const auto   q     = static_cast<std::size_t>(args.rot_first + (inter ? 2 * i + 1 : i + args.d_rot / 2));
    const double a = y[p], b = y[q];
    y[p] = m[0] * a + m[1] * b;
    y[q] = m[2] * a + m[3] * b;
}

} // namespace reference
