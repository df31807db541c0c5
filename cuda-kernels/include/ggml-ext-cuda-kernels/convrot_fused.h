#ifndef GGML_EXT_CUDA_KERNELS_CONVROT_FUSED_H
#define GGML_EXT_CUDA_KERNELS_CONVROT_FUSED_H

// What comes before a ConvRot quantisation, in one pass with it (group 256, see quantize_i8.h):
//   SCALE        y = a * scale
//   RMS_NORM     y = a / sqrt(mean(a^2) + eps) * weight
//   SWIGLU       y = a / (1 + exp(-a)) * b         SiLU times a gate: a and b are halves of one row or apart
//   SIGMOID_MUL  y = 1 / (1 + exp(-a)) * b
// Pointers and strides of a, b and weight are multiples of 16 bytes, those of q multiples of 4.

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_ext_cuda_convrot_source {
    GGML_EXT_CUDA_CONVROT_SCALE       = 0,
    GGML_EXT_CUDA_CONVROT_RMS_NORM    = 1,
    GGML_EXT_CUDA_CONVROT_SWIGLU      = 2,
    GGML_EXT_CUDA_CONVROT_SIGMOID_MUL = 3,
};

struct ggml_ext_cuda_convrot_fused_args {
    int           source;      // enum ggml_ext_cuda_convrot_source
    int64_t       M, K;        // rows, features; K a multiple of 256, at most 32768 for RMS_NORM
    int64_t       padded_rows; // >= M: rows M .. padded_rows-1 of q are filled with zeros
    const float * a;
    size_t        a_stride; // bytes between rows
    const float * b;        // SWIGLU, SIGMOID_MUL
    size_t        b_stride;
    const float * weight; // RMS_NORM: K floats, or NULL for 1
    float         eps;    // RMS_NORM: >= 0
    float         scale;  // SCALE
    int8_t *      q;
    size_t        q_stride;
    float *       out_scale; // M floats, aligned to 4 bytes
};

// Bytes of workspace; 0 for K up to 32768.
size_t ggml_ext_cuda_convrot_fused_workspace_size(int64_t M, int64_t K);

int ggml_ext_cuda_convrot_fused(const struct ggml_ext_cuda_convrot_fused_args * args,
                                void *                                          workspace,
                                size_t                                          workspace_size,
                                void *                                          stream);

#ifdef __cplusplus
}
#endif

#endif
