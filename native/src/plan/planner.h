#pragma once
// Makes plans. Before allocation: strip, reorder, match, check, freeze, inject. At compute: single-node kernels only.

#include "interpose/device.h"
#include "plan/plan.h"

namespace ggml_ext::plan {

struct planner {
    const attached_device & device;
    ggml_backend *          backend;

    // may reorder `graph` (not where addresses are already there). `fuse` false: single-node kernels only
    plan_ptr before_allocation(ggml_cgraph * graph, const snapshot & kernels, bool fuse) const;

    plan_ptr at_compute(ggml_cgraph * graph, const snapshot & kernels) const;

    // replaces a fused step by single-node steps
    void split_group(plan & p, size_t step_index, const snapshot & kernels) const;
};

// true where a node that owns its storage already has an address
bool has_addresses(const ggml_cgraph * graph);

} // namespace ggml_ext::plan
