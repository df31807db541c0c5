#pragma once

// Which function a UNARY or GLU node computes. ggml numbers them anew now and then, so the loaded ggml is asked for the name.

#include "node.h"

namespace cpu_ops {

// "GELU_ERF", ...; "" where the loaded ggml does not tell.
const char * unary_name(const ggml_ext_node & node);

// Whether the node is there and a UNARY of that name over x.
bool is_unary_of(const ggml_ext_node * node, const char * name, const ggml_ext_tensor & x);

// "SWIGLU", ...; likewise.
const char * glu_name(const ggml_ext_node & node);

} // namespace cpu_ops
