#pragma once
// What runs where, for the nodes that one backend computes: data, immutable once built but for counters and addresses.

#include "registry/describe.h"

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ggml_ext::plan {

struct print128 {
    uint64_t a = 0, b = 0;
    bool     operator==(const print128 & o) const { return a == o.a && b == o.b; }
};

// One extension step: a single node or a fused group. Nodes between steps are the device's own.
struct step {
    int                   first = 0;
    int                   count = 1;
    kernel_ptr            k;
    bool                  fused             = false;
    bool                  workspace_in_leaf = false; // its node carries the leaf
    bool                  unprepared        = false; // prepare failed
    kept_nodes            views;  // of its nodes, in order
    ggml_ext_prepared     prepared{}; // prepare's answer
    ggml_ext_exec_params  exec{};     // refreshed before each compute
    print128              print;      // of its nodes' and their sources' metadata
    std::vector<int32_t>  uses;       // of a group's intermediates, in the whole graph: a reader in another split is in no print
    std::atomic<uint64_t> executed{0};
    std::atomic<uint64_t> time_ns{0};
    std::atomic<uint64_t> timed{0}; // executions that time_ns is the time of

    ~step(); // destroys the prepared state

    ggml_tensor * output(ggml_tensor * const * nodes_of_plan) const { return nodes_of_plan[first + count - 1]; }
};

// A status: whether prepare's answer can be met, if there is the memory.
int check_prepared(const ggml_ext_prepared & prepared);

// Why kernels do not serve nodes. Most reasons come many times, one after another: they are kept once.
class refusal_list {
public:
    struct text {
        std::string kernel, reason;
    };

    void         add(int node, const std::string & kernel, const char * reason);
    bool         empty() const { return entries_.empty(); }
    size_t       size() const { return entries_.size(); }
    int          node(size_t i) const { return entries_[i].node; }
    const text & why(size_t i) const { return texts_[entries_[i].text]; }
    // kernel and reason of the last one, "" where there is none
    std::string latest() const { return empty() ? "" : why(size() - 1).kernel + " " + why(size() - 1).reason; }

private:
    struct entry {
        int    node;
        size_t text;
    };
    std::vector<entry> entries_;
    std::vector<text>  texts_;
};

// What a plan says of a node to observers; the graph may be gone by then.
struct label {
    const char * op; // ggml's, or of an operator that is never freed
    uint32_t     name; // where it begins in plan::names
    int32_t      type;
    int64_t      ne[4];
};

// Where a tensor of a step was when its addresses were refreshed.
struct address {
    const ggml_tensor * tensor;
    const void *        data;
};

// Where planning adds sources to nodes: topology only, so that it is the same for every batch size (plan/inject.h).
struct injection {
    int node;
    int from_node; // the source added is that node's src[from_slot]; -1: the leaf (workspace) alone
    int from_slot;

    bool operator==(const injection & o) const { return node == o.node && from_node == o.from_node && from_slot == o.from_slot; }
};

struct plan {
    uint64_t                           epoch             = 0; // of the registrations it was made from
    bool                               before_allocation = false;
    ggml_tensor **                     base              = nullptr; // the graph's node array
    std::vector<ggml_tensor *>         nodes; // in the order in which they run
    print128                           print; // of the nodes as they came: pointers and metadata
    print128                           print_ordered; // of `nodes`
    bool                               stale        = false; // made where addresses were there already
    bool                               groups_split = false; // a group runs as single operations after all
    arena                              memory; // of the steps' views
    std::vector<std::unique_ptr<step>> steps;
    refusal_list                       refusals;
    std::vector<label>                 labels; // of `nodes`
    std::unique_ptr<char[]>            names;  // of `nodes`, each with its NUL
    std::vector<injection>             injections;
    std::vector<int>                   writes; // nodes that write the storage of a leaf, of which kernels may keep a copy
    int                                error = GGML_EXT_STATUS_SUCCESS; // of a failed callback, or a missing kernel; computing it fails
    std::string                        error_message;
    bool                               of_callback = false; // the error: told once, then what failed is asked again
    bool                               error_told  = false;

    size_t        workspace_size = 0; // the largest request
    size_t        leaf_size      = 0;      // the largest request of any shape of this graph so far
    bool          leaf_holds_it  = true;   // ggml's allocator gives the workspace; false: it may not have that much, the backend tries
    ggml_tensor * leaf           = nullptr;     // in ggml's allocator; not owned (see leaf_pool); NULL: none
    const void *  allocated_with = nullptr;     // the graph that the leaf's memory came with; others that fit may outlive that memory
    bool          leaf_is_there  = false;       // whether it is that graph that is computed now
    // where a step's workspace lies in ggml's allocator; NULL: it does not
    void * leaf_data(const step & s) const { return leaf_is_there && s.workspace_in_leaf && leaf != nullptr ? leaf->data : nullptr; }

    bool     injected     = false;   // the graph carries added sources now
    uint64_t verified_uid = 0;   // ggml's id of the allocated graph that was found to be the planned one

    std::vector<address> addresses; // of all tensors of all steps, as their views have them; empty: to be refreshed
    uint64_t             addresses_version = 0; // counts refreshments that found others
    uint64_t             n_groups          = 0;  // fused steps

    std::shared_ptr<void> exec_data; // what the executor keeps for it
    std::atomic<uint64_t> n_computed{0};

    ~plan();
};

using plan_ptr = std::shared_ptr<plan>;

} // namespace ggml_ext::plan
