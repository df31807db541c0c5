#include "error_table.h"
#include "ggml-ext-kernels/gemm_f32.h"
#include "reference.h"
#include "support.h"

void gemm_f32_errors() {
    table_head("gemm_f32");
    const int64_t shapes[][3] = {{1, 384, 384}, {16, 1536, 384}, {128, 384, 1536}, {512, 384, 384}, {16, 17, 16}, {128, 4096, 4096}};
    for (const auto & [M, N, K] : shapes) {
        const auto        w = test::uniform(static_cast<size_t>(N * K), 1), x = test::uniform(static_cast<size_t>(M * K), 2);
        std::vector<char> packed(ggml_ext_cpu_gemm_f32_packed_size(N, K)),
            scratch(ggml_ext_cpu_gemm_f32_scratch_size(M, N, K));
        std::vector<float> dst(static_cast<size_t>(M * N));
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
        ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), 0, 1);
        // relative to the sum of absolute products: the sum itself may be near zero
        test::error e;
        for (int64_t i = 0; i < M * N; i += M * N > 100000 ? 37 : 1) {
            const auto   s = reference::dot(&x[static_cast<size_t>(i / N * K)], &w[static_cast<size_t>(i % N * K)], K);
            const double d = std::fabs(dst[static_cast<size_t>(i)] - s.value);
            e.absolute     = std::fmax(e.absolute, d);
            e.relative     = std::fmax(e.relative, d / s.magnitude);
        }
        table_row("M=%ld N=%ld K=%ld", {M, N, K}, e);
    }
}
