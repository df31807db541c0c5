#ifndef GGML_EXT_CUDA_KERNELS_ROPE_H
#define GGML_EXT_CUDA_KERNELS_ROPE_H

// Rotary position embedding over x [d_head, n_head, L, N] (ggml order), optionally after RMSNorm and a weight:
//   y = norm ? x / sqrt(mean(x^2) + eps) * weight : x           over each row of d_head
//   pair i of y is multiplied by a 2x2 matrix of its position; what lies outside
//   [rot_first, rot_first + d_rot) is y itself
//   dst = y * scale, as float or rounded to half
// Pair i is (2i, 2i + 1), interleaved, or (i, i + d_rot/2), split halves, counted from rot_first.
// A row of a float dst may be the same row of x (equal pointer and strides); no other overlap.
// Fastest where d_head is 16, 32, 64, 128 or 256 and pointers and strides are multiples of 16 bytes.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Largest d_rot.
#define GGML_EXT_CUDA_ROPE_MAX_D_ROT 4096

enum ggml_ext_cuda_rope_pairs {
    GGML_EXT_CUDA_ROPE_INTERLEAVED = 0, // ggml's mode normal
    GGML_EXT_CUDA_ROPE_SPLIT_HALF  = 1, // ggml's mode neox
};

// The angles of ggml's ROPE node, YaRN included: position * theta_scale^pair in float, as ggml's CUDA backend has it.
struct ggml_ext_cuda_rope_angles {
    const int32_t * positions;    // device: L of them, the same for each of N
    const float *   freq_factors; // device: d_rot/2, or NULL for 1
    int32_t         n_ctx_orig;
    float           freq_base, freq_scale, ext_factor, attn_factor, beta_fast, beta_slow;
};

struct ggml_ext_cuda_rope_args {
    int64_t       d_head, n_head, L, N;
    int64_t       rot_first, d_rot; // both even
    int           pairs;            // enum ggml_ext_cuda_rope_pairs
    const float * x;
    size_t        x_nb1, x_nb2, x_nb3; // bytes between heads, positions, batches; multiples of 4
    void *        dst;                 // float, or half where dst_f16 is set
    int           dst_f16;
    size_t        dst_nb1, dst_nb2, dst_nb3; // bytes; multiples of dst's element

    // Either matrices, [[a, b], [c, d]] as four successive floats for each (position, pair) ...
    const float * pe;
    size_t        pe_pair, pe_position, pe_batch; // bytes between pairs, positions, batches (0: the same for all)
    // ... or angles (a host pointer), where pe is NULL.
    const struct ggml_ext_cuda_rope_angles * angles;

    int           norm;   // RMSNorm first
    float         eps;    // >= 0; read where norm is set
    const float * weight; // d_head floats or NULL for 1; read where norm is set
    float         scale;  // of the result; 1 for none
};

int ggml_ext_cuda_rope(const struct ggml_ext_cuda_rope_args * args, void * stream);

#ifdef __cplusplus
}
#endif

#endif
