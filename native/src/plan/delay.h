#pragma once
// ggml_ext_graph_delay: moving a run of nodes behind independent ones (FUSE-3).

#include "plan/graph_index.h"

#include <string>

namespace ggml_ext::plan {

// Moves [first, first + count) directly before node `before` (n_nodes: to the end). Returns "" and moves, or returns the reason
// ("FUSE-3: node 9 reads node 4") and moves nothing.
//
// Crossed nodes, those from first + count to before - 1, must neither depend on a moved node nor touch its storage: no moved node
// writes what a crossed one reads or writes, and the other way round (byte ranges inside one owner; addresses where known).
// Copies, in-place operations and conversions may move and be crossed as long as that holds; nodes with unknown effects may not.
//
// In-place consumers of a moved owner: those in the range move along with it; one among the crossed nodes is refused, by name,
// so that the caller can widen the range; those at `before` or later stay behind their owner as they were.
//
// Only the order of nodes changes: no edge, no metadata.
std::string delay(graph_index & index, int first, int count, int before);

} // namespace ggml_ext::plan
