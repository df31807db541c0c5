#include "error_table.h"
#include "ggml-ext-kernels/make_row.h"
#include "reference.h"
#include "support.h"

void make_row_errors() {
    table_head("make_row (relative: to the row's largest value)");
    const char * const names[] = {"scale n=%ld", "GELU erf n=%ld", "SiLU times y n=%ld", "sigmoid times y n=%ld",
                                  "modulated LayerNorm n=%ld", "modulated RMSNorm n=%ld"};
    for (int64_t n : {384, 4096}) {
        const size_t size = static_cast<size_t>(n);
        const auto   x = test::uniform(size, 1, -6, 6), y = test::uniform(size, 2, -3, 3), w = test::uniform(size, 3, 0.5f, 2);
        for (int kind = GGML_EXT_CPU_ROW_SCALE; kind <= GGML_EXT_CPU_ROW_RMS_NORM; kind++) {
            const ggml_ext_cpu_row row = {kind, x.data(), y.data(), 0.37f, -1.25f, 1e-6f, w.data(), y.data(), y.data()};
            std::vector<float>     dst(size);
            ggml_ext_cpu_make_row(&row, n, dst.data());
            const auto  expected = reference::make_row(row, n);
            test::error e;
            double      largest = 0;
            for (size_t i = 0; i < size; i++) {
                largest = std::fmax(largest, std::fabs(expected[i]));
            }
            for (size_t i = 0; i < size; i++) {
                e.add(dst[i], expected[i]);
            }
            e.relative = e.absolute / largest;
            table_row(names[kind], {n}, e);
        }
    }
}
