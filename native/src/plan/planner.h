#pragma once
// Makes plans. Before allocation: strip, reorder, match, check, freeze, inject. At compute: single-node kernels only.

#include "interpose/device.h"
#include "plan/graph_index.h"
#include "plan/plan.h"

#include <mutex>

namespace ggml_ext::plan {

struct planner {
    const attached_device & device;
    ggml_backend *          backend;

    // may reorder the graph, if not `stale`: addresses are there already. `fuse` false: single-node kernels only
    plan_ptr before_allocation(graph_index & graph, const print128 & print, const snapshot & kernels, bool fuse, bool stale) const;

    plan_ptr at_compute(graph_index & graph, const print128 & print, const snapshot & kernels) const;

    // Asks the kernels whose prepare failed anew. A failed match or optimize stays without effect until the graph is allocated again.
    void prepare_again(plan & p, std::mutex & observers) const;

    // Replaces a fused step by single-node steps; `observers` read steps and refusals. Kernels are called without the lock.
    void split_group(plan & p, size_t step_index, const snapshot & kernels, std::mutex & observers) const;
};

} // namespace ggml_ext::plan
