#pragma once

// What ROPE and sd.rope_apply.v1 have in common: a node becomes arguments of the kernel.

#include "ggml-ext-kernels/rope.h"
#include "node.h"

namespace cpu_ops {

struct rotation {
    ggml_ext_cpu_rope_args   args{};
    ggml_ext_cpu_rope_angles angles{}; // of ROPE
};

// Metadata, and the addresses where there are any. False with the reason where the kernel does not compute the node.
bool read_rope(const ggml_ext_node & node, rotation & out);
bool read_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, rotation & out);
bool read_rotation(const ggml_ext_node & node, rotation & out); // either of them

// Task form for the group's last node; `norm` is RMS_NORM with its MUL behind it, or NULL.
int prepare_rotation(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * user_data);
int run_rotation(const ggml_ext_exec_params & params, const ggml_ext_node * const * norm, int32_t ith, int32_t nth);

} // namespace cpu_ops
