#pragma once
// May a run of consecutive nodes be replaced by one step that yields the last one's result only? (FUSE-2)
// This module knows nothing of any rule: no mathematics, dtype, layout or hardware.

#include "plan/graph_index.h"

#include <string>

namespace ggml_ext::plan {

// "" where [first, first + count) may be fused, else the reason ("FUSE-2: node 7 has 2 consumers").
//
// - each node is computed (COMPUTE flag), has elements, stands once in the graph, and has known effects;
// - each node but the last is read by nodes of the match and by no other, itself or through a view of its storage, and
//   carries no flag of an output, input, parameter or loss;
// - a view or in-place node that is not the last has its storage in an earlier node of the match; once an in-place node wrote
//   there, what the storage held before is not read again;
// - the last node owns its storage, or it is a CPY whose destination lies outside the match.
//
// A single node (an override) is legal by the first and the last rule; its effects need not be known.
std::string check_legal(const graph_index & index, int first, int count);

} // namespace ggml_ext::plan
