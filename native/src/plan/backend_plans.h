#pragma once
// The plans of one backend: found again by the graph's node array, verified, evicted oldest first.

#include "plan/planner.h"

#include <list>
#include <unordered_map>

namespace ggml_ext::plan {

struct plan_stats {
    std::atomic<uint64_t> planned{0}, planned_late{0}, computed{0}, groups{0}, singly{0}, plan_time_ns{0}, workspace_size{0};
    std::atomic<uint64_t> recorded{0}, reused{0}, replayed{0};
};

class backend_plans {
public:
    backend_plans(const attached_device & device, ggml_backend * backend) : planner_{device, backend} {}

    // the graph_optimize hook, after the backend's own
    void plan_before_allocation(ggml_cgraph * graph);

    // The plan for a compute, with the added sources taken off the graph; NULL: nothing of ours is in it.
    plan_ptr plan_for_compute(ggml_cgraph * graph);

    // A status: the plan's error. One of a callback is told once; at the next compute what failed is asked again.
    int check(plan & p);

    // Refreshes addresses; splits groups whose output overlaps what they read.
    void refresh(plan & p);

    void count_compute(const plan & p);

    void drop_all();

    // Calls `look` with plan `index` (most recent first), which does not change meanwhile; returns the number of plans.
    template <typename Look> size_t visit(int index, Look && look) const {
        std::lock_guard<std::mutex> lock(mutex_);
        if (index >= 0 && static_cast<size_t>(index) < plans_.size()) {
            look(**std::next(plans_.begin(), index));
        }
        return plans_.size();
    }

    plan_stats stats;

private:
    plan_ptr find(ggml_tensor * const * base, int n_nodes, bool before_allocation) const;
    void     remember(plan_ptr p);
    void     apply_learned_needs(plan & p, const graph_index & index);
    bool     may_be_allocated(size_t workspace) const;

    static constexpr size_t SURELY_THERE   = size_t{256} << 20;
    static constexpr size_t MAX_PLANS      = 256;
    static constexpr size_t MAX_STRUCTURES = 1024;

    planner             planner_;
    mutable std::mutex  mutex_; // of the list, and of steps and refusals for observers
    std::list<plan_ptr> plans_;
    // by structure of the graph: all places that one of its shapes needed, and the largest workspace
    struct needs {
        std::vector<injection> places; // in the order of nodes
        size_t                 workspace_size = 0;
    };
    std::unordered_map<uint64_t, needs> learned_;
    size_t                              largest_leaf_ = 0; // workspace in ggml's buffers
};

} // namespace ggml_ext::plan
