#pragma once
// Is this graph the one that was planned? Hashes of node pointers and metadata, addresses left out.

#include "plan/plan.h"

namespace ggml_ext::plan {

// of all nodes: pointer, op, type, shape, strides, op_params, flags, sources (also their types and shapes), views
print128 print_nodes(ggml_tensor * const * nodes, int n_nodes);

// of the nodes of one step and their sources
print128 print_step(ggml_tensor * const * nodes, int first, int count);

} // namespace ggml_ext::plan
