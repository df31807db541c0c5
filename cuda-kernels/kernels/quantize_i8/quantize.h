#pragma once

#include "ggml-ext-cuda-kernels/quantize_i8.h"

namespace ggml_ext_cuda {

// ggml_ext_cuda_quantize_i8 with the number of groups of 256 features that half a warp holds: 1, 2 or 4, 0 for the
// entry's own choice. For benchmarks.
int quantize_i8(
    const ggml_ext_cuda_quantize_i8_args & args, int groups, void * workspace, size_t workspace_size, void * stream);

} // namespace ggml_ext_cuda
