#pragma once

// Which function a UNARY or GLU node computes. ggml numbers them anew now and then, so the loaded ggml is asked for the name.

#include "node.h"

namespace cpu_ops {

// "GELU_ERF", ...; "" where the loaded ggml does not tell.
const char * unary_name(const ggml_ext_node & node);

// "SWIGLU", ...; likewise.
const char * glu_name(const ggml_ext_node & node);

} // namespace cpu_ops
