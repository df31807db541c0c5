#include "error_table.h"
#include "gelu_reference.h"
#include "ggml-ext-kernels/rows.h"
#include "reference.h"
#include "support.h"

void rows_errors() {
    table_head("rows");
    for (int64_t n : {384, 768, 4096}) {
        const auto x      = test::uniform(static_cast<size_t>(n), 1, -3, 3),
                   weight = test::uniform(static_cast<size_t>(n), 2, 0.5f, 2);
        std::vector<float>        dst(static_cast<size_t>(n));
        const std::vector<double> y(x.begin(), x.end());

        const ggml_ext_cpu_layer_norm_args norm = {1, n, x.data(), 0, nullptr, 0, weight.data(),
                                                   nullptr, 1e-12f, dst.data(), 0};
        ggml_ext_cpu_layer_norm(&norm, 0, 1);
        test::error e;
        auto        expected = reference::layer_norm(y, weight.data(), nullptr, 1e-12f);
        for (size_t i = 0; i < dst.size(); i++) {
            e.add(dst[i], expected[i]);
        }
        table_row("LayerNorm n=%ld", {n}, e);

        const ggml_ext_cpu_softmax_args soft = {1, n, x.data(), 0, nullptr, 0, 1, 1.0f, dst.data(), 0};
        ggml_ext_cpu_softmax(&soft, 0, 1);
        e        = {};
        expected = reference::softmax(y);
        for (size_t i = 0; i < dst.size(); i++) {
            e.add(dst[i], expected[i]);
        }
        table_row("softmax n=%ld", {n}, e);
    }
    for (int64_t span : {1, 4, 12}) {
        const auto         x = test::uniform(1000000, 1, -static_cast<float>(span), static_cast<float>(span));
        std::vector<float> dst(x.size());
        ggml_ext_cpu_gelu_erf(static_cast<int64_t>(x.size()), x.data(), dst.data(), 0, 1);
        test::error e;
        for (size_t i = 0; i < x.size(); i++) {
            e.add(dst[i], reference::gelu_erf(x[i]));
        }
        table_row("GELU erf, -%ld..%ld", {span, span}, e);
    }
}
