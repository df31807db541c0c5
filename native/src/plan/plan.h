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
    int                                first = 0;
    int                                count = 1;
    kernel_ptr                         k;
    bool                               fused = false;
    bool                               workspace_in_leaf = false; // its node carries the leaf
    bool                               addresses_seen = false;    // refreshed at least once
    std::vector<kept_node>             views; // of its nodes, in order
    std::vector<const ggml_ext_node *> nodes;      // the same, as callbacks get them
    ggml_ext_prepared                  prepared{}; // prepare's answer
    ggml_ext_exec_params               exec{};     // refreshed before each compute
    print128                           print;      // of its nodes' and their sources' metadata
    std::atomic<uint64_t>              executed{0};
    std::atomic<uint64_t>              time_ns{0};

    ~step(); // destroys the prepared state

    ggml_tensor * output(ggml_tensor * const * nodes_of_plan) const { return nodes_of_plan[first + count - 1]; }
};

struct refusal {
    int         node;
    std::string kernel;
    std::string reason;
};

// What a plan says of a node to observers; the graph may be gone by then.
struct label {
    char         name[64];
    const char * op; // ggml's, or of an operator that is never freed
    int32_t      type;
    int64_t      ne[4];
};

// Where planning adds sources to nodes: topology only, so that it is the same for every batch size (plan/inject.h).
struct injection {
    int node;
    int from_node; // the source added is that node's src[from_slot]; -1: the leaf (workspace) alone
    int from_slot;

    bool operator==(const injection & o) const { return node == o.node && from_node == o.from_node && from_slot == o.from_slot; }
};

struct plan {
    uint64_t                         epoch  = 0; // of the registrations it was made from
    bool                             before_allocation = false;
    ggml_tensor **                   base   = nullptr; // the graph's node array
    std::vector<ggml_tensor *>       found; // nodes in the order in which they came
    std::vector<ggml_tensor *>       nodes; // in the order in which they run
    print128                         print; // of `found`: pointers and metadata
    print128                         print_ordered; // of `nodes`
    bool                             stale = false; // made where addresses were there already
    bool                             groups_split = false; // a group runs as single operations after all
    std::vector<std::unique_ptr<step>> steps;
    std::vector<refusal>             refusals;
    std::vector<label>               labels; // of `nodes`
    std::vector<injection>           injections;
    int                              error = GGML_EXT_STATUS_SUCCESS; // of a failed prepare; computing it fails
    std::string                      error_message;

    size_t                           workspace_size = 0; // the largest request
    size_t                           leaf_size = 0;      // the largest request of any shape of this graph so far
    ggml_tensor *                    leaf = nullptr;     // in ggml's allocator; not owned (see leaf_pool); NULL: none
    bool                             injected = false;   // the graph carries added sources now
    uint64_t                         verified_uid = 0;   // ggml's id of the allocated graph that was found to be the planned one

    std::shared_ptr<void>            exec_data; // what the executor keeps for it
    std::atomic<uint64_t>            n_computed{0};

    ~plan();
};

using plan_ptr = std::shared_ptr<plan>;

} // namespace ggml_ext::plan
