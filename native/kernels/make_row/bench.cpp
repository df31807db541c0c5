#include "bench.h"
#include "ggml-ext-kernels/make_row.h"
#include "ggml-ext-kernels/quantize_i8.h"

#include <cstdio>
#include <vector>

// A row made and quantised while it is in the cache, against one pass over all rows after the other.
void make_row_bench() {
    std::printf("\n### make_row, then quantise (ConvRot)\n\n| row | M | K | G | two passes us | row by row us | ratio |\n"
                "|---|---|---|---|---|---|---|\n");
    const char * const names[]     = {"scale", "GELU erf", "SiLU times y", "sigmoid times y", "LayerNorm", "RMSNorm"};
    const int64_t      shapes[][3] = {{16, 384, 64}, {128, 1536, 256}, {512, 1536, 256}, {512, 4096, 256}, {4096, 4096, 256}};
    for (const auto & [M, K, G] : shapes) {
        const size_t        k = static_cast<size_t>(K), size = static_cast<size_t>(M * K);
        std::vector<float>  x(size), y(size, 0.7f), made(size), row(k), weight(k, 1.1f), scale(static_cast<size_t>(M));
        std::vector<int8_t> q(size);
        std::vector<char>   scratch(ggml_ext_cpu_quantize_i8_scratch_size(K, G));
        for (size_t i = 0; i < size; i++) {
            x[i] = static_cast<float>(i * 2654435761u % 1000) / 250.0f - 2.0f;
        }
        const auto make = [&](int kind, int64_t m, float * dst) {
            const float *          from = &x[static_cast<size_t>(m) * k];
            const float *          with = &y[static_cast<size_t>(m) * k];
            const ggml_ext_cpu_row args = {kind, from, with, 0.5f, 0.1f, 1e-6f, weight.data(), nullptr, weight.data()};
            ggml_ext_cpu_make_row(&args, K, dst);
        };
        const auto quantize = [&](const float * from, int64_t m, int64_t rows) {
            const ggml_ext_cpu_quantize_i8_args args = {
                rows, K, G, rows, from, k * sizeof(float), &q[static_cast<size_t>(m) * k], k, &scale[static_cast<size_t>(m)]};
            ggml_ext_cpu_quantize_i8(&args, scratch.data(), scratch.size(), 0, 1);
        };
        for (int kind = GGML_EXT_CPU_ROW_SCALE; kind <= GGML_EXT_CPU_ROW_RMS_NORM; kind++) {
            const auto t = bench::interleaved({{"two passes",
                                                [&] {
                                                    for (int64_t m = 0; m < M; m++) {
                                                        make(kind, m, &made[static_cast<size_t>(m) * k]);
                                                    }
                                                    quantize(made.data(), 0, M);
                                                }},
                                               {"row by row",
                                                [&] {
                                                    for (int64_t m = 0; m < M; m++) {
                                                        make(kind, m, row.data());
                                                        quantize(row.data(), m, 1);
                                                    }
                                                }}});
            std::printf("| %s | %ld | %ld | %ld | %.1f | %.1f | %.2f |\n", names[kind], static_cast<long>(M), static_cast<long>(K),
                        static_cast<long>(G), 1e6 * t[0], 1e6 * t[1], t[0] / t[1]);
        }
    }
}
