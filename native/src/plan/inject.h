#pragma once
// Workspace and keep-alive inside ggml's allocator: sources added to nodes before allocation, taken off at the first compute.
//
//  - Workspace: one I8 leaf, added to each step that wants scratch memory. ggml's allocator gives it the largest request, frees it
//    behind the last step, and counts it (KERNEL-4).
//  - Keep-alive: each external input of a fused group is added to its final node, so that it stays allocated until then (FUSE-4);
//    twice if an in-place operation could otherwise take its block for the output.
//
// What is added depends on topology alone. A source that appears for one batch size only would make ggml reserve anew whenever the
// size changes, so a place that once was needed is filled in every later graph of the same structure.

#include "abi/injected.h"
#include "plan/graph_index.h"
#include "plan/plan.h"

namespace ggml_ext::plan {

// Leaves are never freed: a graph that was allocated but not computed still points to one. A leaf goes back to the pool only when
// its graph carries it no more.
class leaf_pool {
public:
    static leaf_pool & get();
    ggml_tensor *      take();
    void               give_back(ggml_tensor * leaf);
    // Some graph may carry added sources; not only of the backend that asks: a graph outlives the backend that allocated it.
    bool ever_used() const { return ever_used_.load(std::memory_order_relaxed); }

private:
    struct alignas(LEAF_ALIGNMENT) aligned_tensor {
        ggml_tensor tensor;
    };

    std::mutex                 mutex_;
    std::deque<aligned_tensor> all_;
    std::vector<ggml_tensor *> free_;
    std::atomic<bool>          ever_used_{false};
};

constexpr size_t WORKSPACE_ALIGNMENT = 128;

// Sets `out` to the places that a fused group needs. False where its final node has too few free source slots.
bool keep_alive_places(const graph_index & index, int first, int count, std::vector<injection> & out);

// Adds sources at `p.injections`, which are in the order of nodes; creates p.leaf with room for `p.leaf_size` bytes.
void inject(plan & p);

// Number of free slots behind the last source of a node
int free_slots(const ggml_tensor * node);

} // namespace ggml_ext::plan
