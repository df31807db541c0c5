#pragma once
// The one place that decides which kernel serves a node (KERNEL-1, KERNEL-2).

#include "interpose/device.h"
#include "plan/plan.h"

namespace ggml_ext::plan {

struct selection {
    kernel_ptr k;      // NULL: the device's own kernel, or none at all
    bool       native; // where k is NULL: the device's own kernel supports the node
};

// `why_not` may be NULL; `node_index` is written into it.
selection select_kernel(const attached_device & device, const snapshot & kernels, const ggml_tensor * node, int node_index,
                        refusal_list * why_not);

// May extensions serve this node at all? Views and explicit in-place nodes are not intercepted (KERNEL-5).
bool interceptable(const abi::ggml & g, const ggml_tensor * node);

} // namespace ggml_ext::plan
