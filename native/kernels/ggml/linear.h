#pragma once

// The sources of sd.linear_i8.v1, for the CPU's and the CUDA library.

#include "convrot.h"

namespace cpu_ops {

constexpr int64_t LINEAR_I8_MAX_K = 131071; // the sum of so many products of two int8 fits into int32

struct linear {
    const ggml_ext_tensor *w = nullptr, *x = nullptr, *w_scale = nullptr, *x_scale = nullptr, *bias = nullptr;
    int64_t                M = 0, N = 0, K = 0;
    bool                   packed = false; // X is the packed ConvRot tensor
};

// False with the reason where they are malformed.
bool read_linear(int32_t n_src, const ggml_ext_tensor * const * src, const void * attributes, linear & out);

int infer_linear(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * user_data);

} // namespace cpu_ops
