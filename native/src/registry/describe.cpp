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

void node_view::keep() {
    kept_ = std::make_unique<strings>();
    std::memcpy(kept_->names[0], dst_.name, sizeof(kept_->names[0]));
    dst_.name = kept_->names[0];
    for (int i = 0; i < node_.n_src; ++i) {
        if (src_pointers_[i] != nullptr) {
            std::memcpy(kept_->names[1 + i], src_[i].name, sizeof(kept_->names[0]));
            src_[i].name = kept_->names[1 + i];
        }
    }
    std::memcpy(kept_->op_params, node_.op_params, sizeof(kept_->op_params));
    node_.op_params = kept_->op_params;
    if (node_.attrs != nullptr) {
        node_.attrs = reinterpret_cast<const char *>(kept_->op_params) + ATTRS_OFFSET;
    }
}

bool node_view::refresh_addresses() {
    bool changed = dst_.data != dst_.tensor->data;
    dst_.data    = dst_.tensor->data;
    for (int i = 0; i < node_.n_src; ++i) {
        if (src_pointers_[i] != nullptr) {
            changed |= src_[i].data != src_[i].tensor->data;
            src_[i].data = src_[i].tensor->data;
        }
    }
    return changed;
}

} // namespace ggml_ext
