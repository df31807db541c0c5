#pragma once

// The F32 product of a weight and activations, for the MUL_MAT override and the rules that begin with MUL_MAT.

#include "weights.h"

namespace cpu_ops {

// 1 where the kernel computes this MUL_MAT, else 0 with the reason.
int32_t supports_product_f32(const ggml_ext_node & mul_mat);

// 1 where it is faster than ggml's own, else 0 with the reason.
int32_t prefers_product_f32(const ggml_ext_node & mul_mat);

// Task form, for nodes[0] a MUL_MAT: phase 0 packs what is new of the weight, phase 1 multiplies.
int  prepare_product_f32(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * user_data);
void destroy_product_f32(void * state, void * user_data);

// dst = activation(mul_mat + bias); bias may be NULL
int run_product_f32(const ggml_ext_exec_params & params, const ggml_ext_tensor & dst, const float * bias, int activation, int32_t phase,
                    int32_t ith, int32_t nth, weight_cache & weights);

} // namespace cpu_ops
