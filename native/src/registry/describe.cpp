#include "registry/describe.h"

#include "abi/injected.h"

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
    std::memcpy(&op, reinterpret_cast<const char *>(node->op_params) + 16, sizeof(op));
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
    return node->op >= 0 && node->op < g.n_ops ? g.fn.ggml_op_name(node->op) : "UNKNOWN";
}

void describe_tensor(const abi::ggml & g, const ggml_tensor * tensor, ggml_ext_tensor & out) {
    out.struct_size = sizeof(out);
    out.tensor      = tensor;
    out.data        = tensor->data;
    std::memcpy(out.ne, tensor->ne, sizeof(out.ne));
    std::memcpy(out.nb, tensor->nb, sizeof(out.nb));
    out.nbytes    = g.fn.ggml_nbytes(tensor);
    out.type      = tensor->type;
    out.flags     = tensor->flags & (FLAG_INPUT | FLAG_OUTPUT | FLAG_PARAM);
    out.name      = tensor->name;
    out.op        = op_name_of(g, tensor);
    out.view_src  = tensor->view_src;
    out.view_offs = tensor->view_offs;
}

void node_view::set(const abi::ggml & g, const ggml_tensor * node) {
    describe_tensor(g, node, dst_);
    int  n_src = 0;
    bool added = false;
    for (int i = 0; i < GGML_EXT_MAX_SRC; ++i) {
        const ggml_tensor * src = node->src[i];
        added |= is_injected(src);
        if (src == nullptr || added) {
            src_pointers_[i] = nullptr;
            continue;
        }
        describe_tensor(g, src, src_[i]);
        src_pointers_[i] = &src_[i];
        n_src            = i + 1;
    }
    const op_registration * op = operator_of(g, node);
    node_.struct_size = sizeof(node_);
    node_.op          = dst_.op;
    node_.dst         = &dst_;
    node_.n_src       = n_src;
    node_.src         = src_pointers_;
    node_.op_params   = node->op_params;
    node_.attrs       = op != nullptr ? reinterpret_cast<const char *>(node->op_params) + ATTRS_OFFSET : nullptr;
    node_.attrs_size  = op != nullptr ? op->attrs_size : 0;
}

kept_node::kept_node(const node_view & view) {
    constexpr size_t      NAME = 64, OP_PARAMS = 64;
    const ggml_ext_node & from = view.get();
    n_tensors_                 = 1;
    for (int i = 0; i < from.n_src; ++i) {
        n_tensors_ += from.src[i] != nullptr ? 1 : 0;
    }
    const size_t n       = static_cast<size_t>(n_tensors_);
    const size_t n_src   = static_cast<size_t>(from.n_src);
    const size_t sources = sizeof(ggml_ext_node) + n * sizeof(ggml_ext_tensor);
    const size_t params  = sources + n_src * sizeof(void *);
    const size_t names   = params + OP_PARAMS;
    block_.reset(new char[names + n * NAME]);
    char * block = block_.get();

    auto *  node    = new (block) ggml_ext_node(from);
    auto ** src     = reinterpret_cast<const ggml_ext_tensor **>(block + sources);
    char *  name    = block + names;
    tensors_        = reinterpret_cast<ggml_ext_tensor *>(block + sizeof(ggml_ext_node));
    ggml_ext_tensor * next = tensors_;
    const auto        keep = [&](const ggml_ext_tensor & tensor) {
        auto * kept = new (next++) ggml_ext_tensor(tensor);
        std::memcpy(name, tensor.name, NAME);
        kept->name = name;
        name += NAME;
        return kept;
    };
    node->dst = keep(*from.dst);
    for (size_t i = 0; i < n_src; ++i) {
        src[i] = from.src[i] != nullptr ? keep(*from.src[i]) : nullptr;
    }
    node->src = src;
    std::memcpy(block + params, from.op_params, OP_PARAMS);
    node->op_params = block + params;
    if (from.attrs != nullptr) {
        node->attrs = block + params + ATTRS_OFFSET;
    }
}

bool kept_node::refresh_addresses() {
    bool changed = false;
    for (int i = 0; i < n_tensors_; ++i) {
        ggml_ext_tensor & t = tensors_[i];
        changed |= t.data != t.tensor->data;
        t.data = t.tensor->data;
    }
    return changed;
}

} // namespace ggml_ext
