#include "bench.h"
#include "ggml-ext-kernels/quantize_i8.h"

#include <cstdio>
#include <cstring>
#include <vector>

void quantize_i8_bench() {
    std::printf("\n### quantize_i8: the memcpy moves the bytes of x\n\n| M | K | G | ours us | memcpy us | ours / "
                "memcpy | read GB/s |\n|---|---|---|---|---|---|---|\n");
    const int64_t shapes[][2] = {{128, 384}, {512, 1536}, {512, 4096}, {4096, 4096}};
    for (const auto & [M, K] : shapes) {
        for (int64_t group : {1, 4, 16, 64, 256}) {
            if (K % group != 0) {
                continue;
            }
            bench::lines<float> x(static_cast<size_t>(M * K)), copy(x.size());
            std::vector<float>  scale(static_cast<size_t>(M));
            bench::lines<char>  scratch(ggml_ext_cpu_quantize_i8_scratch_size(K, group));
            for (size_t i = 0; i < x.size(); i++) {
                x[i] = static_cast<float>(i % 1000) - 500;
            }
            bench::lines<int8_t>                q(x.size());
            const ggml_ext_cpu_quantize_i8_args args = {
                M, K, group, M, x.data(), static_cast<size_t>(K) * 4, q.data(), static_cast<size_t>(K), scale.data()};

            const auto t = bench::interleaved(
                {{"ours", [&] { ggml_ext_cpu_quantize_i8(&args, scratch.data(), scratch.size(), 0, 1); }},
                 {"memcpy", [&] { std::memcpy(copy.data(), x.data(), x.size() * 4); }}});
            std::printf("| %ld | %ld | %ld | %.1f | %.1f | %.2f | %.1f |\n", static_cast<long>(M), static_cast<long>(K),
                        static_cast<long>(group), 1e6 * t[0], 1e6 * t[1], t[0] / t[1],
                        4e-9 * static_cast<double>(M * K) / t[0]);
        }
    }
}
