#ifndef GGML_EXT_KERNELS_ATTENTION_H
#define GGML_EXT_KERNELS_ATTENTION_H

// Attention without its matrix of weights in memory, block by block of the keys with a running softmax
// (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"; Dao et al. 2022, "FlashAttention"):
//   s(i, j) = scale * sum_d q(i, d) k(j, d) + slope(head) * mask(i, j)
//   dst(i)  = sum_j exp(s(i, j)) v(j) / sum_j exp(s(i, j))                       over each head of each batch
// A key whose mask is -inf counts for nothing, whatever its k and v are; where all are masked, dst is 0. A NaN among what
// counts makes the row NaN.
// slope is 1, or with max_bias > 0 that of ALiBi (Press et al. 2021) as ggml rounds the number of heads down to a power of two.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_ext_cpu_attention_type {
    GGML_EXT_CPU_ATTENTION_F32 = 0,
    GGML_EXT_CPU_ATTENTION_F16 = 1,
};

// Bytes between successive rows (queries or keys), heads and batches.
struct ggml_ext_cpu_attention_strides {
    size_t row, head, batch;
};

struct ggml_ext_cpu_attention_args {
    int64_t queries, keys;
    int64_t heads, kv_heads; // kv_heads divides heads; successive heads share one
    int64_t batches, kv_batches;
    int64_t d_k, d_v; // elements of a row of q and k, of v and dst

    const float *                         q;
    struct ggml_ext_cpu_attention_strides q_stride;
    int                                   kv_type; // enum ggml_ext_cpu_attention_type, of both
    const void *                          k;
    struct ggml_ext_cpu_attention_strides k_stride;
    const void *                          v;
    struct ggml_ext_cpu_attention_strides v_stride;

    const uint16_t *                      mask; // F16, `keys` of them for each query; or NULL
    int64_t                               mask_heads, mask_batches; // what heads and batches are taken modulo
    struct ggml_ext_cpu_attention_strides mask_stride;

    float scale;
    float max_bias; // >= 0; read where there is a mask

    float *                               dst;
    struct ggml_ext_cpu_attention_strides dst_stride;
};

// Scratch bytes that each thread needs.
size_t ggml_ext_cpu_attention_scratch_size(int64_t d_k, int64_t d_v);

int ggml_ext_cpu_attention(
    const struct ggml_ext_cpu_attention_args * args, void * scratch, size_t scratch_size, int ith, int nth);

#ifdef __cplusplus
}
#endif

#endif
