#include "dense.h"
#include "error_table.h"
#include "reference.h"
#include "support.h"

void gemm_i8_errors() {
    table_head("gemm_i8 (against exact sums scaled in double)");
    const int64_t shapes[][3] = {{1, 384, 384}, {16, 1536, 384}, {128, 384, 1536}, {16, 17, 16}, {32, 512, 4096}, {4, 64, 28672}};
    for (const auto & [M, N, K] : shapes) {
        const auto w = test::bytes(static_cast<size_t>(N * K), 1), x = test::bytes(static_cast<size_t>(M * K), 2);
        const auto x_scale = test::uniform(static_cast<size_t>(M), 3, 0.001f, 0.1f),
                   w_scale = test::uniform(static_cast<size_t>(N), 4, 0.001f, 0.1f);
        std::vector<char> packed(ggml_ext_cpu_gemm_i8_packed_size(N, K)),
            scratch(ggml_ext_cpu_gemm_i8_scratch_size(M, N, K));
        std::vector<float> dst(static_cast<size_t>(M * N));
        ggml_ext_cpu_gemm_i8_pack(N, K, w.data(), static_cast<size_t>(K), packed.data(), packed.size(), 0, 1);
        const dense_product             product = {M, N, K, packed.data(), packed.size(), w.data(), x_scale.data(), w_scale.data(), dst.data()};
        const ggml_ext_cpu_gemm_i8_args args    = product.of(x.data());
        ggml_ext_cpu_gemm_i8(&args, scratch.data(), scratch.size(), 0, 1);
        test::error e;
        for (int64_t i = 0; i < M * N; i++) {
            const size_t m = static_cast<size_t>(i / N), n = static_cast<size_t>(i % N);
            const auto   sum = reference::dot_i8(&x[m * static_cast<size_t>(K)], &w[n * static_cast<size_t>(K)], K);
            e.add(dst[static_cast<size_t>(i)], static_cast<double>(sum) * x_scale[m] * w_scale[n]);
        }
        table_row("M=%ld N=%ld K=%ld", {M, N, K}, e);
    }
}
