#ifndef GGML_EXT_CUDA_KERNELS_RESCALE_I8_H
#define GGML_EXT_CUDA_KERNELS_RESCALE_I8_H

// The last step of an INT8 product:
//   dst[m][n] = float(sum[m][n]) * x_scale[m] * w_scale[n] + bias[n]
// in this order, each operation rounded on its own (no fused multiply-add), so that the result is the CPU
// kernels' bit for bit. dst may be sum itself (equal pointer and stride); no other overlap.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_ext_cuda_rescale_i8_args {
    int64_t         M, N; // rows, columns
    const int32_t * sum;
    size_t          sum_stride; // bytes between rows, a multiple of 4
    const float *   x_scale;    // x_scales floats, or NULL for 1
    int64_t         x_scales;   // M, or 1 for one scale of all rows; ignored where x_scale is NULL
    const float *   w_scale;    // w_scales floats, or NULL for 1
    int64_t         w_scales;   // N, or 1 for one scale of all columns; ignored where w_scale is NULL
    const float *   bias;       // N floats, or NULL
    float *         dst;
    size_t          dst_stride; // bytes between rows, a multiple of 4
};

int ggml_ext_cuda_rescale_i8(const struct ggml_ext_cuda_rescale_i8_args * args, void * stream);

#ifdef __cplusplus
}
#endif

#endif
