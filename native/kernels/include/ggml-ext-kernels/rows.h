#ifndef GGML_EXT_KERNELS_ROWS_H
#define GGML_EXT_KERNELS_ROWS_H

// What transformer encoders do to rows between their products: LayerNorm, softmax, GELU.
// dst may be x (or, for LayerNorm, the residual) itself, with the same stride; no other overlap.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

// y = x + residual;  dst = (y - mean(y)) / sqrt(variance(y) + eps) * weight + bias, each row of n on its own.
struct ggml_ext_cpu_layer_norm_args {
    int64_t       rows, n;
    const float * x;
    size_t        x_stride; // bytes between rows
    const float * residual; // or NULL
    size_t        residual_stride;
    const float * weight; // n floats, or NULL for 1
    const float * bias;   // n floats, or NULL for 0
    float         eps;    // >= 0
    float *       dst;
    size_t        dst_stride;
};

int ggml_ext_cpu_layer_norm(const struct ggml_ext_cpu_layer_norm_args * args, int ith, int nth);

// dst = softmax(x * scale + mask) over each row of n. Row r takes mask row r % mask_rows. A row whose values
// are all -inf, or that holds a NaN, becomes NaN.
struct ggml_ext_cpu_softmax_args {
    int64_t       rows, n;
    const float * x;
    size_t        x_stride;
    const float * mask; // or NULL
    size_t        mask_stride;
    int64_t       mask_rows; // >= 1 where there is a mask
    float         scale;
    float *       dst;
    size_t        dst_stride;
};

int ggml_ext_cpu_softmax(const struct ggml_ext_cpu_softmax_args * args, int ith, int nth);

// dst[i] = x[i]/2 * (1 + erf(x[i] / sqrt 2)), relative error below 1e-6 for every normal result. GELU(-inf) is
// NaN, as the formula has it.
int ggml_ext_cpu_gelu_erf(int64_t n, const float * x, float * dst, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif
