#pragma once
// ggml_ext_graph_delay: moving a run of nodes behind independent ones (FUSE-3).

#include "plan/graph_index.h"

#include <string>

namespace ggml_ext::plan {

// Moves [first, first + count) directly before node `before` (n_nodes: to the end). Returns "" and moves, or returns the reason
// ("FUSE-3: node 9 reads node 4") and moves nothing.
std::string delay(graph_index & index, int first, int count, int before);

} // namespace ggml_ext::plan
