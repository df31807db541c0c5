#include "error_table.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "reference.h"
#include "support.h"

// Absolute: |q - y/scale| in quantisation steps (half a step is the rounding itself). Relative: the row scale.
void quantize_i8_errors() {
    table_head("quantize_i8 (abs: steps, rel: row scale)");
    const int64_t shapes[][3] = {
        {8, 384, 1},
        {8, 384, 64},
        {8, 1536, 256},
        {8, 3840, 256},
        {4, 10240, 256},
        {2, 28672, 256},
        {8, 384, 4},
        {8, 384, 16},
    };
    for (const auto & [M, K, group] : shapes) {
        const auto                          x = test::uniform(static_cast<size_t>(M * K), 1);
        std::vector<int8_t>                 q(static_cast<size_t>(M * K));
        std::vector<float>                  scale(static_cast<size_t>(M));
        std::vector<char>                   scratch(ggml_ext_cpu_quantize_i8_scratch_size(K, group));
        const ggml_ext_cpu_quantize_i8_args args = {
            M, K, group, M, x.data(), static_cast<size_t>(K) * 4, q.data(), static_cast<size_t>(K), scale.data()};
        ggml_ext_cpu_quantize_i8(&args, scratch.data(), scratch.size(), 0, 1);
        test::error e;
        for (int64_t m = 0; m < M; m++) {
            const auto   y        = reference::rotate(&x[static_cast<size_t>(m * K)], K, group);
            const double expected = reference::largest(y) / 127;
            e.relative            = std::fmax(e.relative, std::fabs(scale[static_cast<size_t>(m)] - expected) / expected);
            for (int64_t k = 0; k < K; k++) {
                e.absolute = std::fmax(
                    e.absolute, std::fabs(q[static_cast<size_t>(m * K + k)] - y[static_cast<size_t>(k)] / expected));
            }
        }
        table_row("M=%ld K=%ld G=%ld", {M, K, group}, e);
    }
}
