#pragma once
// What callbacks see of a node: struct ggml_ext_node and its tensors, filled from ggml's.

#include "registry/registry.h"
#include "support/arena.h"

namespace ggml_ext {

// The function that marks a registered operator's node. A CPU backend that the layer does not run may call it (OP-3).
using custom_function = void (*)(ggml_tensor * dst, int ith, int nth, void * userdata);

void            set_marker(custom_function marker);
custom_function marker();

// the operator of a node that op_create made, NULL for any other node
const op_registration * operator_of(const abi::ggml & g, const ggml_tensor * node);

// ggml's own parameters of op CUSTOM
void set_custom_params(ggml_tensor & node, custom_function function, int32_t n_tasks, const void * userdata);

// bytes of op_params before the attributes: ggml's own parameters of op CUSTOM (function, n_tasks, userdata)
constexpr size_t ATTRS_OFFSET = 24;

const char * op_name_of(const abi::ggml & g, const ggml_tensor * node);

void describe_tensor(const abi::ggml & g, const ggml_tensor * tensor, ggml_ext_tensor & out);

// A node with room for its tensors; pointers inside it are its own, so it does not move.
class node_view {
public:
    node_view(const abi::ggml & g, const ggml_tensor * node) { set(g, node); }
    node_view(const node_view &)             = delete;
    node_view & operator=(const node_view &) = delete;

    void                  set(const abi::ggml & g, const ggml_tensor * node);
    const ggml_ext_node & get() const { return node_; }
    const ggml_tensor *   tensor() const { return dst_.tensor; }

private:
    ggml_ext_node           node_;
    ggml_ext_tensor         dst_;
    ggml_ext_tensor         src_[GGML_EXT_MAX_SRC];
    const ggml_ext_tensor * src_pointers_[GGML_EXT_MAX_SRC];
};

// The same of several nodes in an arena, in just the size that they need, with copies of the strings and parameters: it may outlive
// the graph.
class kept_nodes {
public:
    kept_nodes() = default; // holds none
    kept_nodes(const abi::ggml & g, ggml_tensor * const * nodes, int n_nodes, arena & memory);

    bool                          empty() const { return nodes_ == nullptr; }
    const ggml_ext_node * const * get() const { return nodes_; }

    void refresh_addresses();

    // their tensors; one that several nodes name comes several times
    const ggml_ext_tensor * begin() const { return tensors_; }
    const ggml_ext_tensor * end() const { return tensors_ + n_tensors_; }

private:
    const ggml_ext_node ** nodes_     = nullptr;
    ggml_ext_tensor *      tensors_   = nullptr;
    int                    n_tensors_ = 0;
};

} // namespace ggml_ext
