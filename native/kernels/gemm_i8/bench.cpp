#include "bench.h"
#include "dense.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "support.h"

#include <algorithm>
#include <cstdio>

// "quantise + GEMM" starts from float activations: row quantiser, product, scales. oneDNN multiplies x unsigned, as its fastest kernels
// want it, and signed, as ours has it; without VNNI its unsigned sums of two products may saturate. Its results are sums, and once
// ("scaled") floats scaled by column, which is ours but for the scales by row.
void gemm_i8_bench() {
    std::printf("\n### gemm_i8\n\n| M | N | K | int8 peak GOP/s | ours GOP/s | of peak | quantise + GEMM of peak | "
                "oneDNN u8s8s32 GOP/s | ours / oneDNN | oneDNN u8s8f32, scaled GOP/s | ours / oneDNN | oneDNN s8s8s32 GOP/s | ours / oneDNN |\n"
                "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
    const bench::peak peak         = bench::peak_i8();
    const int64_t     weights[][2] = {{384, 384}, {1536, 384}, {384, 1536}, {4096, 4096}};
    for (const auto & [N, K] : weights) {
        for (int64_t M : {1, 16, 128, 512}) {
            if (M * N * K > (int64_t{1} << 32)) {
                continue;
            }
            bench::lines<int8_t> w(static_cast<size_t>(N * K)), x(static_cast<size_t>(M * K));
            std::copy_n(test::quantized_rows(static_cast<size_t>(N), static_cast<size_t>(K), 1).begin(), w.size(), w.begin());
            std::copy_n(test::quantized_rows(static_cast<size_t>(M), static_cast<size_t>(K), 2).begin(), x.size(), x.begin());
            bench::lines<uint8_t> x_unsigned(x.begin(), x.end());
            bench::lines<int8_t>  x_quantized(x.size());
            bench::lines<float>   x_float(x.begin(), x.end()), x_scale(static_cast<size_t>(M), 0.1f),
                w_scale(static_cast<size_t>(N), 0.1f), dst(static_cast<size_t>(M * N));
            bench::lines<int32_t> peer(dst.size());
            bench::lines<float>   peer_scaled(dst.size());
            bench::lines<char>    packed(ggml_ext_cpu_gemm_i8_packed_size(N, K)),
                scratch(ggml_ext_cpu_gemm_i8_scratch_size(M, N, K));
            ggml_ext_cpu_gemm_i8_pack(N, K, w.data(), static_cast<size_t>(K), packed.data(), packed.size(), 0, 1);
            const dense_product                 product  = {M, N, K, packed.data(), packed.size(), w.data(), x_scale.data(), w_scale.data(), dst.data()};
            const ggml_ext_cpu_quantize_i8_args quantize = {M,
                                                            K,
                                                            1,
                                                            M,
                                                            x_float.data(),
                                                            static_cast<size_t>(K) * 4,
                                                            x_quantized.data(),
                                                            static_cast<size_t>(K),
                                                            x_scale.data()};
            const auto                          multiply = [&](const int8_t * rows) {
                const ggml_ext_cpu_gemm_i8_args args = product.of(rows);
                ggml_ext_cpu_gemm_i8(&args, scratch.data(), scratch.size(), 0, 1);
            };
            const auto t =
                bench::interleaved({{"ours", [&] { multiply(x.data()); }},
                                    {"peak", peak.work},
                                    {"quantise + GEMM",
                                     [&] {
                                         ggml_ext_cpu_quantize_i8(&quantize, nullptr, 0, 0, 1);
                                         multiply(x_quantized.data());
                                     }},
                                    {"oneDNN unsigned", bench::onednn_i8(M, N, K, x_unsigned.data(), w.data(), peer.data())},
                                    {"oneDNN scaled", bench::onednn_i8_scaled(M, N, K, x_unsigned.data(), w.data(), w_scale.data(), peer_scaled.data())},
                                    {"oneDNN signed", bench::onednn_i8(M, N, K, x.data(), w.data(), peer.data())}});
            const double work = static_cast<double>(M) * static_cast<double>(N * K), rate = peak.macs / t[1];
            std::printf("| %ld | %ld | %ld | %.1f | %.1f | %.0f %% | %.0f %% |", static_cast<long>(M), static_cast<long>(N),
                        static_cast<long>(K), 2e-9 * rate, 2e-9 * work / t[0], 100 * work / t[0] / rate, 100 * work / t[2] / rate);
            for (const double peer_time : {t[3], t[4], t[5]}) {
                std::printf(" %.1f | %.2f |", peer_time > 0 ? 2e-9 * work / peer_time : 0, peer_time / t[0]);
            }
            std::printf("\n");
        }
    }
}
