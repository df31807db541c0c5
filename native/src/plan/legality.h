#pragma once
// May a run of consecutive nodes be replaced by one step that yields the last one's result only? (FUSE-2)
// This module knows nothing of any rule: no mathematics, dtype, layout or hardware.

#include "plan/graph_index.h"

#include <string>

namespace ggml_ext::plan {

// "" where [first, first + count) may be fused, else the reason ("FUSE-2: node 7 has 2 consumers")
std::string check_legal(const graph_index & index, int first, int count);

} // namespace ggml_ext::plan
