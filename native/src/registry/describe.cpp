#include "registry/describe.h"

#include "abi/injected.h"

#include <algorithm>
#include <cstring>

namespace ggml_ext {

namespace {
custom_function the_marker = nullptr; // set once, before anything is attached
}

void set_marker(custom_function marker) {
    the_marker = marker;
}

custom_function marker() {
    return the_marker;
}

const op_registration * operator_of(const abi::ggml & g, const ggml_tensor * node) {
    if (node->op != g.op.custom) {
        return nullptr;
    }
    custom_function function;
    std::memcpy(&function, node->op_params, sizeof(function));
    if (function != the_marker) {
        return nullptr;
    }
    const op_registration * op;
    std::memcpy(&op, reinterpret_cast<const char *>(node->op_params) + 16, sizeof(const op_registration *));
    return op;
}

void set_custom_params(ggml_tensor & node, custom_function function, int32_t n_tasks, const void * userdata) {
    auto * params = reinterpret_cast<char *>(node.op_params);
    std::memcpy(params, &function, sizeof(function));
    std::memcpy(params + 8, &n_tasks, sizeof(n_tasks));
    std::memcpy(params + 16, &userdata, sizeof(userdata));
}

const char * op_name_of(const abi::ggml & g, const ggml_tensor * node) {
    if (const op_registration * op = operator_of(g, node)) {
        return op->name.c_str();
    }
    const char * name = g.op_name(node->op);
    return name != nullptr ? name : "UNKNOWN";
}

namespace {

// ggml_nbytes, without a call for the types that most tensors have
size_t nbytes_of(const abi::ggml & g, const ggml_tensor * t) {
    constexpr int32_t F16 = 1, I32 = 26, BF16 = 30;
    const size_t      element = t->type == TYPE_F32 || t->type == I32 ? 4 : t->type == F16 || t->type == BF16 ? 2
                                                                                                              : 0;
    if (element == 0) {
        return g.fn.ggml_nbytes(t);
    }
    size_t nbytes = element;
    for (int i = 0; i < GGML_EXT_MAX_DIMS; ++i) {
        if (t->ne[i] <= 0) {
            return 0;
        }
        nbytes += static_cast<size_t>(t->ne[i] - 1) * t->nb[i];
    }
    return nbytes;
}

// number of source slots up to the last source that is not an added one
int n_own_sources(const ggml_tensor * node) {
    int n = 0;
    for (int i = 0; i < GGML_EXT_MAX_SRC && !is_injected(node->src[i]); ++i) {
        if (node->src[i] != nullptr) {
            n = i + 1;
        }
    }
    return n;
}

const char * function_of(const abi::ggml & g, const ggml_tensor * node) {
    if (node->op == g.op.unary) {
        return g.fn.ggml_unary_op_name(node->op_params[0]);
    }
    return node->op == g.op.glu ? g.fn.ggml_glu_op_name(node->op_params[0]) : nullptr;
}

// all but the pointers to tensors
void describe_node(const abi::ggml & g, const ggml_tensor * node, const ggml_ext_tensor & dst, int n_src, ggml_ext_node & out) {
    const op_registration * op = operator_of(g, node);
    out.struct_size            = sizeof(out);
    out.op                     = dst.op;
    out.dst                    = &dst;
    out.n_src                  = n_src;
    out.op_params              = node->op_params;
    out.attrs                  = op != nullptr ? reinterpret_cast<const char *>(node->op_params) + ATTRS_OFFSET : nullptr;
    out.attrs_size             = op != nullptr ? op->attrs_size : 0;
    out.function               = function_of(g, node);
}

} // namespace

void describe_tensor(const abi::ggml & g, const ggml_tensor * tensor, ggml_ext_tensor & out) {
    out.struct_size = sizeof(out);
    out.tensor      = tensor;
    out.data        = tensor->data;
    std::memcpy(out.ne, tensor->ne, sizeof(out.ne));
    std::memcpy(out.nb, tensor->nb, sizeof(out.nb));
    out.nbytes    = nbytes_of(g, tensor);
    out.type      = tensor->type;
    out.flags     = tensor->flags & (FLAG_INPUT | FLAG_OUTPUT | FLAG_PARAM);
    out.name      = tensor->name;
    out.op        = op_name_of(g, tensor);
    out.view_src  = tensor->view_src;
    out.view_offs = tensor->view_offs;
}

void node_view::set(const abi::ggml & g, const ggml_tensor * node) {
    describe_tensor(g, node, dst_);
    const int n_src = n_own_sources(node);
    for (int i = 0; i < n_src; ++i) {
        src_pointers_[i] = nullptr;
        if (node->src[i] != nullptr) {
            describe_tensor(g, node->src[i], src_[i]);
            src_pointers_[i] = &src_[i];
        }
    }
    describe_node(g, node, dst_, n_src, node_);
    node_.src = src_pointers_;
}

kept_nodes::kept_nodes(const abi::ggml & g, ggml_tensor * const * nodes, int n_nodes, arena & memory) {
    constexpr size_t NAME = sizeof(ggml_tensor::name), OP_PARAMS = sizeof(ggml_tensor::op_params);
    const size_t     n       = static_cast<size_t>(n_nodes);
    size_t           n_slots = 0, n_tensors = n;
    for (int i = 0; i < n_nodes; ++i) {
        const int n_src = n_own_sources(nodes[i]);
        n_slots += static_cast<size_t>(n_src);
        n_tensors += static_cast<size_t>(n_src - std::count(nodes[i]->src, nodes[i]->src + n_src, nullptr));
    }
    auto * kept = static_cast<ggml_ext_node *>(memory.allocate(n * sizeof(ggml_ext_node)));
    auto * slot = static_cast<const ggml_ext_tensor **>(memory.allocate(n_slots * sizeof(void *)));
    auto * text = static_cast<char *>(memory.allocate(n * OP_PARAMS + n_tensors * NAME)); // op_params and names
    nodes_      = static_cast<const ggml_ext_node **>(memory.allocate(n * sizeof(void *)));
    tensors_    = static_cast<ggml_ext_tensor *>(memory.allocate(n_tensors * sizeof(ggml_ext_tensor)));

    const auto keep_text = [&text](const void * from, size_t size) {
        char * copy = static_cast<char *>(std::memcpy(text, from, size));
        text += size;
        return copy;
    };
    const auto keep_tensor = [&](const ggml_tensor * from) -> const ggml_ext_tensor * {
        auto * tensor = new (tensors_ + n_tensors_++) ggml_ext_tensor;
        describe_tensor(g, from, *tensor);
        tensor->name = keep_text(from->name, NAME);
        return tensor;
    };
    for (int i = 0; i < n_nodes; ++i) {
        const ggml_tensor * from = nodes[i];
        auto *              node = new (kept + i) ggml_ext_node;
        describe_node(g, from, *keep_tensor(from), n_own_sources(from), *node);
        node->src = slot;
        for (int j = 0; j < node->n_src; ++j) {
            *slot++ = from->src[j] != nullptr ? keep_tensor(from->src[j]) : nullptr;
        }
        char * params   = keep_text(from->op_params, OP_PARAMS);
        node->op_params = params;
        node->attrs     = node->attrs != nullptr ? params + ATTRS_OFFSET : nullptr;
        nodes_[i]       = node;
    }
}

void kept_nodes::refresh_addresses() {
    for (int i = 0; i < n_tensors_; ++i) {
        tensors_[i].data = tensors_[i].tensor->data;
    }
}

} // namespace ggml_ext
