#pragma once

// The source and the attribute of sd.quantize_i8_convrot.v1, for the CPU's and the CUDA library.

#include "ggml-ext-cpu-ops.h"
#include "node.h"

namespace cpu_ops {

// Bytes of the packed tensor of M rows of K features. Each library's kernels say it.
size_t convrot_size(int64_t M, int64_t K);

int32_t convrot_group(const void * attrs);

// False with the reason where X or the group is none that the operator has.
bool accepts_convrot(int32_t n_src, const ggml_ext_tensor * const * src, int32_t group);

int infer_convrot(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * user_data);

} // namespace cpu_ops
