#pragma once

// The CPU kernel of rotations in task form.

#include "ggml-ext.h"

namespace cpu_ops {

// For the group's last node; `norm` is RMS_NORM with its MUL behind it, or NULL.
int prepare_rotation(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * user_data);
int run_rotation(const ggml_ext_exec_params & params, const ggml_ext_node * const * norm, int32_t ith, int32_t nth);

} // namespace cpu_ops
