#include "bench.h"
#include "ggml-ext-kernels/rows.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

void rows_bench() {
    std::printf("\n### rows\n\n| kernel | rows | n | ours us | memcpy us | plain C us | ours / memcpy | plain C / ours "
                "|\n|---|---|---|---|---|---|---|---|\n");
    const int64_t      rows = 512, n = 1536;
    const size_t       size = static_cast<size_t>(rows * n);
    std::vector<float> x(size), dst(size), copy(size), weight(static_cast<size_t>(n), 1.5f);
    for (size_t i = 0; i < size; i++) {
        x[i] = static_cast<float>(i % 997) * 0.01f - 5;
    }
    const ggml_ext_cpu_layer_norm_args norm = {rows,
                                               n,
                                               x.data(),
                                               static_cast<size_t>(n) * 4,
                                               x.data(),
                                               static_cast<size_t>(n) * 4,
                                               weight.data(),
                                               weight.data(),
                                               1e-5f,
                                               dst.data(),
                                               static_cast<size_t>(n) * 4};
    const ggml_ext_cpu_softmax_args    soft = {rows, n, x.data(), static_cast<size_t>(n) * 4, nullptr, 0,
                                               1, 1.0f, dst.data(), static_cast<size_t>(n) * 4};
    const auto                         move = [&] { std::memcpy(copy.data(), x.data(), size * 4); };

    const struct {
        const char *          name;
        std::function<void()> ours, plain;
    } kernels[] = {
        {"residual + LayerNorm", [&] { ggml_ext_cpu_layer_norm(&norm, 0, 1); }, {}},
        {"softmax", [&] { ggml_ext_cpu_softmax(&soft, 0, 1); },
         [&] {
             for (int64_t r = 0; r < rows; r++) {
                 const float * from = &x[static_cast<size_t>(r * n)];
                 float *       to   = &dst[static_cast<size_t>(r * n)];
                 float         most = from[0], total = 0;
                 for (int64_t i = 1; i < n; i++) {
                     most = from[i] > most ? from[i] : most;
                 }
                 for (int64_t i = 0; i < n; i++) {
                     total += to[i] = std::exp(from[i] - most);
                 }
                 for (int64_t i = 0; i < n; i++) {
                     to[i] /= total;
                 }
             }
         }},
        {"GELU erf", [&] { ggml_ext_cpu_gelu_erf(rows * n, x.data(), dst.data(), 0, 1); },
         [&] {
             for (size_t i = 0; i < size; i++) {
                 dst[i] = 0.5f * x[i] * (1.0f + std::erf(x[i] * 0.70710678f));
             }
         }},
    };
    for (const auto & k : kernels) {
        const auto t = bench::interleaved({{"ours", k.ours}, {"memcpy", move}, {"plain C", k.plain}});
        std::printf("| %s | %ld | %ld | %.1f | %.1f | %.1f | %.2f | %.1f |\n", k.name, static_cast<long>(rows),
                    static_cast<long>(n), 1e6 * t[0], 1e6 * t[1], 1e6 * t[2], t[0] / t[1], t[2] / t[0]);
    }
}
