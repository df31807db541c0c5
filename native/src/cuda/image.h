#pragma once
// Device code in memory before the driver sees it, which takes no size: all that it will follow must lie inside.

#include <cstddef>

namespace ggml_ext::cuda {

// A status: INVALID_ARGUMENT, and what was found, where the bytes are no whole cubin, fat binary or PTX text.
int check_image(const void * image, size_t size);

} // namespace ggml_ext::cuda
