#include "error_table.h"

#include "ggml-ext-kernels/common.h"

#include <cstdio>

void table_head(const char * family) {
    std::printf("\n### %s (%s)\n\n| shape | max abs error | max rel error |\n|---|---|---|\n", family,
                ggml_ext_cpu_isa());
}

void table_row(const char * shape_format, const std::vector<int64_t> & extents, const test::error & e) {
    long n[5] = {};
    for (size_t i = 0; i < extents.size() && i < 5; i++) {
        n[i] = static_cast<long>(extents[i]);
    }
    std::printf("| ");
    std::printf(shape_format, n[0], n[1], n[2], n[3], n[4]);
    std::printf(" | %.3g | %.3g |\n", e.absolute, e.relative);
}

int main() {
    attention_errors();
    gemm_f32_errors();
    quantize_i8_errors();
    gemm_i8_errors();
    rows_errors();
    make_row_errors();
    rope_errors();
    return 0;
}
