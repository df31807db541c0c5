#pragma once

// The CUDA kernel of rotations.

#include "library.h"
#include "rotation.h"

namespace cuda_ops {

// False with the reason where the kernel does not take so many features, or positions.
bool within_limit(const rotation & r);

// `norm` is RMS_NORM with its MUL behind it, or NULL; `scale` and `dst_f16` are of what is written to dst.
int launch_rotation(const ggml_ext_exec_params & params, const device & d, const ggml_ext_node & node, const ggml_ext_node * const * norm,
                    const ggml_ext_tensor & dst, float scale, bool dst_f16);

// execute of a single node
int execute_rotation(const ggml_ext_exec_params * params, void * user_data);

} // namespace cuda_ops
