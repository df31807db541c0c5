#ifndef GGML_EXT_KERNELS_MAKE_ROW_H
#define GGML_EXT_KERNELS_MAKE_ROW_H

// One row of floats that another kernel takes over while it is in the cache: what stands before a quantiser.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_ext_cpu_row_kind {
    GGML_EXT_CPU_ROW_SCALE       = 0, // x * factor + offset
    GGML_EXT_CPU_ROW_GELU_ERF    = 1, // x/2 * (1 + erf(x / sqrt 2))
    GGML_EXT_CPU_ROW_SILU_MUL    = 2, // x / (1 + exp(-x)) * y
    GGML_EXT_CPU_ROW_SIGMOID_MUL = 3, // 1 / (1 + exp(-x)) * y
    GGML_EXT_CPU_ROW_NORM        = 4, // (x - mean(x)) / sqrt(variance(x) + eps), then see below
    GGML_EXT_CPU_ROW_RMS_NORM    = 5, // x / sqrt(mean(x^2) + eps), then see below
};

// After a norm, each where it is not NULL, in this order: v *= weight; v += v * modulation; v += shift.
struct ggml_ext_cpu_row {
    int           kind; // enum ggml_ext_cpu_row_kind
    const float * x;
    const float * y; // the other factor; else NULL
    float         factor, offset;
    float         eps; // >= 0
    const float * weight;
    const float * modulation;
    const float * shift;
};

// n floats to dst, which overlaps no source.
int ggml_ext_cpu_make_row(const struct ggml_ext_cpu_row * row, int64_t n, float * dst);

#ifdef __cplusplus
}
#endif

#endif
