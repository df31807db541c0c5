#include "arguments.h"
#include "kernel.h"

int ggml_ext_cpu_make_row(const struct ggml_ext_cpu_row * row, int64_t n, float * dst) {
    if (!row || !extents_ok(n) || !dst || !row->x || row->kind < GGML_EXT_CPU_ROW_SCALE || row->kind > GGML_EXT_CPU_ROW_RMS_NORM ||
        !float_aligned(row->x, row->y, row->weight, row->modulation, row->shift, dst)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    const bool gate = row->kind == GGML_EXT_CPU_ROW_SILU_MUL || row->kind == GGML_EXT_CPU_ROW_SIGMOID_MUL;
    if ((gate && !row->y) || (row->kind >= GGML_EXT_CPU_ROW_NORM && !(row->eps >= 0))) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    GGML_EXT_SELECT(make_row).make(*row, n, dst);
    return GGML_EXT_CPU_OK;
}
