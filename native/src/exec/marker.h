#pragma once

#include <cstdint>

namespace ggml_ext {

// how often a registered operator's node was reached by a CPU backend without any kernel that could run it
uint64_t marker_failures();

} // namespace ggml_ext
