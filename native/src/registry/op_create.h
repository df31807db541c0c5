#pragma once
// Making a registered operator's node in a ggml context (OP-2).

#include "registry/registry.h"

namespace ggml_ext {

int op_create(const abi::ggml & g, ggml_context * ctx, const op_use & use, int32_t n_src, ggml_tensor * const * src,
              const void * attrs, size_t attrs_size, ggml_tensor ** out);

} // namespace ggml_ext
