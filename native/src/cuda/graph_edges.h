#pragma once
// The edges of a recorded CUDA graph.

#include "cuda/driver.h"

namespace ggml_ext::cuda {

// Removes each edge between two nodes that a longer way leads from one to the other too. A stream that waits for another one while
// both are captured keeps its own last node as a dependency beside what it waits for, and a kernel with two dependencies cannot begin
// while the nearer one ends (programmatic dependent launch), whatever their edges say. All other edges stay as they are. A driver
// before CUDA 12.3, which cannot say what kinds of edges there are, leaves the graph alone. A status.
int remove_implied_edges(const driver & cu, CUgraph graph);

} // namespace ggml_ext::cuda
