#include "bench.h"
#include "ggml-ext-kernels/gemm_f32.h"

#include <cstdio>
#include <vector>

void gemm_f32_bench() {
    std::printf("\n### gemm_f32\n\n| M | N | K | FMA peak GFLOP/s | ours GFLOP/s | of peak | weights GB/s | oneDNN "
                "GFLOP/s | ours / oneDNN |\n|---|---|---|---|---|---|---|---|---|\n");
    const bench::peak peak         = bench::peak_f32();
    const int64_t     weights[][2] = {{384, 384}, {1536, 384}, {384, 1536}, {4096, 4096}};
    for (const auto & [N, K] : weights) {
        for (int64_t M : {1, 4, 16, 128, 512}) {
            if (M * N * K > (int64_t{1} << 32)) {
                continue;
            }
            bench::lines<float> w(static_cast<size_t>(N * K), 0.5f), x(static_cast<size_t>(M * K), 0.25f),
                dst(static_cast<size_t>(M * N)), peer(dst);
            bench::lines<char> packed(ggml_ext_cpu_gemm_f32_packed_size(N, K)),
                scratch(ggml_ext_cpu_gemm_f32_scratch_size(M, N, K));
            ggml_ext_cpu_gemm_f32_pack(N, K, w.data(), static_cast<size_t>(K) * 4, packed.data(), packed.size(), 0, 1);
            const ggml_ext_cpu_gemm_f32_args args = {M,
                                                     N,
                                                     K,
                                                     packed.data(),
                                                     packed.size(),
                                                     x.data(),
                                                     static_cast<size_t>(K) * 4,
                                                     dst.data(),
                                                     static_cast<size_t>(N) * 4,
                                                     nullptr,
                                                     0};
            const auto                       t    = bench::interleaved(
                {{"ours", [&] { ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), 0, 1); }},
                                          {"peak", peak.work},
                                          {"oneDNN", bench::onednn_f32(M, N, K, x.data(), w.data(), peer.data())}});
            const double work = static_cast<double>(M) * static_cast<double>(N * K);
            std::printf("| %ld | %ld | %ld | %.1f | %.1f | %.0f %% | %.1f | %.1f | %.2f |\n", static_cast<long>(M),
                        static_cast<long>(N), static_cast<long>(K), 2e-9 * peak.macs / t[1], 2e-9 * work / t[0],
                        100 * work / t[0] / (peak.macs / t[1]), 4e-9 * static_cast<double>(N * K) / t[0],
                        t[2] > 0 ? 2e-9 * work / t[2] : 0, t[2] / t[0]);
        }
    }
}
