#include "bench.h"
#include "ggml-ext-kernels/rope.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

// The peer is three plain loops over the whole tensor, as three nodes of a graph would run.
void rope_bench() {
    std::printf("\n### rope: RMSNorm, weight, rotation, d = 128, 24 heads, 512 positions\n\n| pairs | ours us | memcpy "
                "us | three plain loops us | ours / memcpy | plain / ours |\n|---|---|---|---|---|---|\n");
    const int64_t      d = 128, heads = 24, L = 512, size = d * heads * L;
    std::vector<float> x(static_cast<size_t>(size)), dst(x.size()), y(x.size()), z(x.size()),
        weight(static_cast<size_t>(d), 1.5f), scratch(3 * 128);
    std::vector<float> pe(static_cast<size_t>(L * d / 2 * 4), 0.5f);
    for (size_t i = 0; i < x.size(); i++) {
        x[i] = static_cast<float>(i % 101) * 0.01f;
    }
    for (int pairs : {GGML_EXT_CPU_ROPE_INTERLEAVED, GGML_EXT_CPU_ROPE_SPLIT_HALF}) {
        ggml_ext_cpu_rope_args a = {};
        a.d_head = a.d_rot = d;
        a.n_head           = heads;
        a.L                = L;
        a.N                = 1;
        a.pairs            = pairs;
        a.x                = x.data();
        a.dst              = dst.data();
        a.x_nb1 = a.dst_nb1 = static_cast<size_t>(d) * 4;
        a.x_nb2 = a.dst_nb2 = static_cast<size_t>(d * heads) * 4;
        a.pe                = pe.data();
        a.pe_pair           = 16;
        a.pe_position       = static_cast<size_t>(d / 2) * 16;
        a.norm              = 1;
        a.eps               = 1e-6f;
        a.weight            = weight.data();

        const auto plain = [&] {
            for (int64_t r = 0; r < heads * L; r++) {
                float squares = 0;
                for (int64_t i = 0; i < d; i++) {
                    squares += x[static_cast<size_t>(r * d + i)] * x[static_cast<size_t>(r * d + i)];
                }
                const float factor = 1.0f / std::sqrt(squares / static_cast<float>(d) + a.eps);
                for (int64_t i = 0; i < d; i++) {
                    y[static_cast<size_t>(r * d + i)] = x[static_cast<size_t>(r * d + i)] * factor;
                }
            }
            for (int64_t i = 0; i < size; i++) {
                z[static_cast<size_t>(i)] = y[static_cast<size_t>(i)] * weight[static_cast<size_t>(i % d)];
            }
            for (int64_t r = 0; r < heads * L; r++) {
                const float * m   = &pe[static_cast<size_t>(r / heads * d / 2 * 4)];
                const float * in  = &z[static_cast<size_t>(r * d)];
                float *       out = &dst[static_cast<size_t>(r * d)];
                for (int64_t i = 0; i < d / 2; i++, m += 4) {
                    const int64_t p = pairs == GGML_EXT_CPU_ROPE_INTERLEAVED ? 2 * i : i,
                                  q = pairs == GGML_EXT_CPU_ROPE_INTERLEAVED ? 2 * i + 1 : i + d / 2;
                    out[p]          = m[0] * in[p] + m[1] * in[q];
                    out[q]          = m[2] * in[p] + m[3] * in[q];
                }
            }
        };
        const auto t =
            bench::interleaved({{"ours", [&] { ggml_ext_cpu_rope(&a, scratch.data(), scratch.size() * 4, 0, 1); }},
                                {"memcpy", [&] { std::memcpy(y.data(), x.data(), x.size() * 4); }},
                                {"plain", plain}});
        std::printf("| %s | %.1f | %.1f | %.1f | %.2f | %.1f |\n",
                    pairs == GGML_EXT_CPU_ROPE_INTERLEAVED ? "interleaved" : "split half", 1e6 * t[0], 1e6 * t[1],
                    1e6 * t[2], t[0] / t[1], t[2] / t[0]);
    }
}
