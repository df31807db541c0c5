#ifndef GGML_EXT_KERNELS_GEMM_I8_H
#define GGML_EXT_KERNELS_GEMM_I8_H

// The INT8 product with scales, in the shapes of ggml's MUL_MAT:
//   w   [K, N] int8, x [K, M] int8, dst [N, M] float
//   dst[m][n] = act(float(sum_k x[m][k]*w[n][k]) * x_scale[m] * w_scale[n] + bias[n])
// The sum is exact for every int8 value, -128 included; the float operations are two products and one sum in
// this order, each rounded on its own (no fused multiply-add), so that before act equal inputs give equal bits with
// every instruction set, and behind it with any number of threads. Scales that are NaN, infinite or zero get no special care.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Largest K for which a sum of K products of two int8 cannot leave int32.
#define GGML_EXT_CPU_GEMM_I8_MAX_K 131071

// Bytes of the packed form of a [K, N] weight; 0 for extents below 1 or too large to count.
size_t ggml_ext_cpu_gemm_i8_packed_size(int64_t N, int64_t K);

// Packs w (row n at w + n*w_stride bytes) into packed. Thread-parallel: each of nth calls packs its share.
int ggml_ext_cpu_gemm_i8_pack(
    int64_t N, int64_t K, const int8_t * w, size_t w_stride, void * packed, size_t packed_size, int ith, int nth);

// The rows of w that call ith of nth packs: *begin to *end, exclusive; none for an N below 1 or no such call.
void ggml_ext_cpu_gemm_i8_pack_share(int64_t N, int ith, int nth, int64_t * begin, int64_t * end);

// Up to so many rows a product reads the weights themselves where it is given them, and needs no packed form.
int64_t ggml_ext_cpu_gemm_i8_unpacked_rows(void);

struct ggml_ext_cpu_gemm_i8_args {
    int64_t        M, N, K;
    const void *   packed; // from ggml_ext_cpu_gemm_i8_pack, complete; not used where M and w allow
    size_t         packed_size;
    const int8_t * x;
    size_t         x_stride;   // bytes between rows of x
    const float *  x_scale;    // x_scales floats, or NULL for 1
    int64_t        x_scales;   // M, or 1 for one scale of all rows; ignored where x_scale is NULL
    const float *  w_scale;    // w_scales floats, or NULL for 1
    int64_t        w_scales;   // N, or 1 for one scale of all columns; ignored where w_scale is NULL
    const float *  bias;       // N floats, or NULL
    int            activation; // enum ggml_ext_cpu_activation, applied last
    float *        dst;
    size_t         dst_stride; // bytes between rows of dst
    const int8_t * w;          // the weights, or NULL; used where M is at most ggml_ext_cpu_gemm_i8_unpacked_rows()
    size_t         w_stride;   // bytes between rows of w
};

// Scratch bytes that each thread needs.
size_t ggml_ext_cpu_gemm_i8_scratch_size(int64_t M, int64_t N, int64_t K);

// GGML_EXT_CPU_UNSUPPORTED where K is above GGML_EXT_CPU_GEMM_I8_MAX_K.
int ggml_ext_cpu_gemm_i8(
    const struct ggml_ext_cpu_gemm_i8_args * args, void * scratch, size_t scratch_size, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif
