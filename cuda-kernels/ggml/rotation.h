#pragma once

// What ROPE and sd.rope_apply.v1 have in common: a node becomes arguments of the kernel.

#include "library.h"

namespace cuda_ops {

struct rotation {
    ggml_ext_cuda_rope_args   args{};
    ggml_ext_cuda_rope_angles angles{}; // of ROPE
};

// Metadata, and the addresses where there are any. False with the reason where the kernel does not compute the node.
bool read_rope(const ggml_ext_node & node, rotation & out);
bool read_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, rotation & out);
bool read_rotation(const ggml_ext_node & node, rotation & out); // either of them

void set_input(const ggml_ext_tensor & x, ggml_ext_cuda_rope_args & args);
int  launch_rotation(const ggml_ext_exec_params & params, const device & d, rotation & r, const ggml_ext_tensor & dst);

// execute of a single node
int execute_rotation(const ggml_ext_exec_params * params, void * user_data);

} // namespace cuda_ops
