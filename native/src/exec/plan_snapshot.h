#pragma once
// What a recorded plan depends on: metadata and addresses of its tensors, kernels, workspace. Compared exactly.

#include "plan/plan.h"

#include <cstddef>

namespace ggml_ext::exec {

// For the same plan: is all as it was when the snapshot was taken? Both look at live tensors of the plan's graph only.
class plan_snapshot {
public:
    void take(const plan::plan & p, const ggml_cgraph * graph);
    bool matches(const plan::plan & p, const ggml_cgraph * graph) const;

private:
    struct record {
        const ggml_tensor * tensor;
        char                bytes[offsetof(ggml_tensor, name)]; // all but name, extra, padding
    };
    std::vector<record>  tensors_; // nodes, then what they read from elsewhere
    size_t               n_nodes_ = 0;
    std::vector<int32_t> use_counts_; // native fusion depends on them
    std::vector<void *>  workspaces_;
    uint64_t             uid_ = 0;    // ggml's id of the allocated graph; the same one, not 0: metadata are the same
};

// For another plan: the same words mean that a recording of one serves the other. Tensors are named by their place, so nothing of
// the graph is needed later.
class plan_key {
public:
    plan_key() = default;
    plan_key(const plan::plan & p, const ggml_cgraph * graph);
    bool operator==(const plan_key & o) const { return words_ == o.words_; }

private:
    std::vector<uint64_t> words_;
};

} // namespace ggml_ext::exec
