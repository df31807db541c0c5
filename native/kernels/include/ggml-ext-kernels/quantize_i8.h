#ifndef GGML_EXT_KERNELS_QUANTIZE_I8_H
#define GGML_EXT_KERNELS_QUANTIZE_I8_H

// Rows of floats to rows of int8 with one scale a row, after an optional rotation (ConvRot):
//   group = 1                 y = x
//   group = 4, 16, 64, 256    each group of features is multiplied by the n-th Kronecker power of
//                             H4 = 1/2 * [[1,1,1,-1],[1,1,-1,1],[1,-1,1,1],[-1,1,1,1]], group = 4^n
//   scale[m] = max_k |y[m][k]| / 127
//   q[m][k]  = y[m][k] * (1 / scale[m]), rounded half to even, clamped to [-127, 127]
// A row of zeros (or so small that its scale rounds to zero) has scale 0 and zeros. A row with a NaN or an
// infinity, or whose rotation overflows, has scale NaN and zeros, so that every product with it is NaN.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_ext_cpu_quantize_i8_args {
    int64_t       M, K;        // rows, features; K a multiple of group
    int64_t       group;       // 1, 4, 16, 64 or 256
    int64_t       padded_rows; // >= M: rows M .. padded_rows-1 of q are filled with zeros
    const float * x;
    size_t        x_stride; // bytes between rows of x
    int8_t *      q;
    size_t        q_stride; // bytes between rows of q
    float *       scale;    // M floats
};

// Scratch bytes that each thread needs; may be 0.
size_t ggml_ext_cpu_quantize_i8_scratch_size(int64_t K, int64_t group);

int ggml_ext_cpu_quantize_i8(
    const struct ggml_ext_cpu_quantize_i8_args * args, void * scratch, size_t scratch_size, int ith, int nth);

// The packed ConvRot tensor: rows of K bytes, their number padded to a multiple of four, then M float scales.
int64_t ggml_ext_cpu_convrot_padded_rows(int64_t M);
size_t  ggml_ext_cpu_convrot_scale_offset(int64_t M, int64_t K);
size_t  ggml_ext_cpu_convrot_size(int64_t M, int64_t K);

#ifdef __cplusplus
}
#endif

#endif
