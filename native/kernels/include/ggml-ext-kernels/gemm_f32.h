#ifndef GGML_EXT_KERNELS_GEMM_F32_H
#define GGML_EXT_KERNELS_GEMM_F32_H

// F32 matrix product with weights packed once, in the shapes of ggml's MUL_MAT:
//   w   [K, N]  N rows of K contiguous floats
//   x   [K, M]
//   dst [N, M]  dst[m][n] = act(sum_k x[m][k] * w[n][k] + bias[n])
// Sums are kept in float, in blocks of K; the order depends on the instruction set and on M, not on the threads.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Bytes of the packed form of a [K, N] weight; 0 for extents below 1 or too large to count.
size_t ggml_ext_cpu_gemm_f32_packed_size(int64_t N, int64_t K);

// Packs w (row n at w + n*w_stride bytes) into packed. Thread-parallel: each of nth calls packs its share.
int ggml_ext_cpu_gemm_f32_pack(
    int64_t N, int64_t K, const float * w, size_t w_stride, void * packed, size_t packed_size, int ith, int nth);

// The rows of w that call ith of nth packs: *begin to *end, exclusive; none for an N below 1 or no such call.
void ggml_ext_cpu_gemm_f32_pack_share(int64_t N, int ith, int nth, int64_t * begin, int64_t * end);

struct ggml_ext_cpu_gemm_f32_args {
    int64_t       M, N, K;
    const void *  packed; // from ggml_ext_cpu_gemm_f32_pack, complete
    size_t        packed_size;
    const float * x;
    size_t        x_stride; // bytes between rows of x
    float *       dst;
    size_t        dst_stride; // bytes between rows of dst
    const float * bias;       // N floats, or NULL
    int           activation; // enum ggml_ext_cpu_activation, applied after the bias
};

// Scratch bytes that each thread needs.
size_t ggml_ext_cpu_gemm_f32_scratch_size(int64_t M, int64_t N, int64_t K);

int ggml_ext_cpu_gemm_f32(
    const struct ggml_ext_cpu_gemm_f32_args * args, void * scratch, size_t scratch_size, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif
