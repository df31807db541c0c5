#pragma once
// A kernel that computes any group of nodes by ggml itself: copies of the nodes, intermediates in workspace, on a CPU backend of its
// own. So its results are ggml's own bits, whatever is fused. It ruins workspace and output first, so that what it may not rely on
// shows as a wrong result.

#include "support/graph_ops.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace ggml_ext::test {

class group_copy {
public:
    // `through_workspace`: the output too is computed there, and copied in a second phase
    group_copy(const ggml_ext_prepare_params & params, bool through_workspace);

    size_t workspace_size() const { return workspace_size_; }

    // Computes the group; into workspace if `through_workspace`. A status.
    int compute(const ggml_ext_exec_params & params, ggml_backend * worker);

    // Copies the part of task ith of nth from workspace to the output.
    void copy_out(const ggml_ext_exec_params & params, int ith, int nth) const;

private:
    struct external {
        ggml_tensor * copy;
        int           node, slot; // where it is a source
    };
    struct free_context {
        void operator()(ggml_context * c) const { stock().base.ggml_free(c); }
    };

    ggml_tensor * copy_of(const ggml_tensor * tensor);
    size_t        place(size_t size);
    void          set_addresses(const ggml_ext_exec_params & params);
    void          ruin_output(const ggml_ext_exec_params & params) const;

    const bool                                             through_workspace_;
    std::vector<ggml_tensor>                               tensors_; // reserved: addresses stay
    std::unordered_map<const ggml_tensor *, ggml_tensor *> copies_;
    std::vector<ggml_tensor *>                             nodes_;
    std::vector<size_t>                                    offsets_; // in workspace, by node
    std::vector<external>                                  externals_;
    size_t                                                 workspace_size_ = 0;
    std::unique_ptr<ggml_context, free_context>            ctx_;
    ggml_cgraph *                                          graph_ = nullptr;
};

} // namespace ggml_ext::test
