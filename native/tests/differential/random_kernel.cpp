#include "differential/random_kernel.h"

#include <cstring>

namespace ggml_ext::test {

namespace {

constexpr size_t NO_PLACE = SIZE_MAX; // the storage is elsewhere

// calls `row` with the address of each row's first element, in order
template <typename Row> void for_each_row(const ggml_tensor & t, char * data, Row && row) {
    for (int64_t i3 = 0; i3 < t.ne[3]; ++i3) {
        for (int64_t i2 = 0; i2 < t.ne[2]; ++i2) {
            for (int64_t i1 = 0; i1 < t.ne[1]; ++i1) {
                row(data + i1 * t.nb[1] + i2 * t.nb[2] + i3 * t.nb[3]);
            }
        }
    }
}

bool overlap(const ggml_ext_tensor & a, const ggml_ext_tensor & b) {
    const char * a0 = static_cast<const char *>(a.data);
    const char * b0 = static_cast<const char *>(b.data);
    return a0 < b0 + b.nbytes && b0 < a0 + a.nbytes;
}

} // namespace

group_copy::group_copy(const ggml_ext_prepare_params & params, bool through_workspace) : through_workspace_(through_workspace) {
    const int n = params.n_nodes;
    tensors_.reserve(static_cast<size_t>(n) * (1 + GGML_EXT_MAX_SRC));
    for (int i = 0; i < n; ++i) {
        nodes_.push_back(copy_of(params.nodes[i]->dst->tensor));
    }
    ctx_.reset(stock().base.ggml_init({stock().base.ggml_graph_overhead_custom(16, false) + 1024, nullptr, true}));
    graph_ = stock().base.ggml_new_graph_custom(ctx_.get(), 16, false);
    for (int i = 0; i < n; ++i) {
        const ggml_ext_node & node = *params.nodes[i];
        for (int j = 0; j < node.n_src; ++j) {
            if (node.src[j] == nullptr) {
                continue;
            }
            const ggml_tensor * src   = node.src[j]->tensor;
            const auto          found = copies_.find(src);
            nodes_[i]->src[j]         = found != copies_.end() ? found->second : copy_of(src);
            if (found == copies_.end()) {
                externals_.push_back({nodes_[i]->src[j], i, j});
            }
        }
        const bool own        = node.dst->view_src == nullptr;
        const bool last       = i == n - 1;
        const bool place_here = last ? through_workspace_ : own;
        offsets_.push_back(place_here ? place(node.dst->nbytes) : NO_PLACE);
        stock().ggml_graph_add_node(graph_, nodes_[i]);
    }
    for (const external & e : externals_) {
        std::memset(e.copy->src, 0, sizeof(e.copy->src));
        e.copy->view_src = nullptr;
        e.copy->op       = 0;
    }
}

ggml_tensor * group_copy::copy_of(const ggml_tensor * tensor) {
    tensors_.push_back(*tensor);
    copies_[tensor] = &tensors_.back();
    return &tensors_.back();
}

size_t group_copy::place(size_t size) {
    const size_t offset = workspace_size_;
    workspace_size_ += (size + 63) / 64 * 64;
    return offset;
}

void group_copy::set_addresses(const ggml_ext_exec_params & params) {
    ggml_backend_buffer * buffer = params.nodes[params.n_nodes - 1]->dst->tensor->buffer;
    for (const external & e : externals_) {
        e.copy->data   = params.nodes[e.node]->src[e.slot]->data;
        e.copy->buffer = params.nodes[e.node]->src[e.slot]->tensor->buffer;
    }
    for (size_t i = 0; i < nodes_.size(); ++i) {
        const ggml_ext_tensor & dst = *params.nodes[i]->dst;
        const auto              own = dst.view_src != nullptr ? copies_.find(dst.view_src) : copies_.end();
        nodes_[i]->buffer           = buffer;
        if (offsets_[i] != NO_PLACE) {
            nodes_[i]->data = static_cast<char *>(params.workspace) + offsets_[i];
        } else if (i + 1 == nodes_.size()) {
            nodes_[i]->data = dst.data;
        } else {
            nodes_[i]->data = static_cast<char *>(own->second->data) + dst.view_offs;
        }
    }
}

// Not where the last node reads: it may work in place, as ggml's own operations do.
void group_copy::ruin_output(const ggml_ext_exec_params & params) const {
    const ggml_ext_node & last = *params.nodes[params.n_nodes - 1];
    const bool            copy = std::strcmp(last.op, "CPY") == 0;
    for (int j = 0; j < last.n_src; ++j) {
        const bool destination = copy && j == 1;
        if (last.src[j] != nullptr && !destination && last.src[j]->data != nullptr && overlap(*last.src[j], *last.dst)) {
            return;
        }
    }
    const ggml_tensor & out     = *nodes_.back();
    const size_t        element = stock().base.ggml_type_size(out.type);
    for_each_row(out, static_cast<char *>(last.dst->data), [&](char * row) {
        for (int64_t i = 0; i < out.ne[0]; ++i) {
            std::memset(row + i * out.nb[0], 0xff, element);
        }
    });
}

int group_copy::compute(const ggml_ext_exec_params & params, ggml_backend * worker) {
    if (params.workspace_size > 0) {
        std::memset(params.workspace, 0xff, params.workspace_size);
    }
    set_addresses(params);
    if (!through_workspace_) {
        ruin_output(params);
    }
    return stock().base.ggml_backend_graph_compute(worker, graph_) == GGML_COMPUTE_SUCCESS ? GGML_EXT_STATUS_SUCCESS : GGML_EXT_STATUS_FAILED;
}

void group_copy::copy_out(const ggml_ext_exec_params & params, int ith, int nth) const {
    const ggml_tensor & out     = *nodes_.back();
    const size_t        element = stock().base.ggml_type_size(out.type);
    std::vector<char *> from;
    for_each_row(out, static_cast<char *>(out.data), [&](char * row) { from.push_back(row); });
    size_t next = 0;
    for_each_row(out, static_cast<char *>(params.nodes[params.n_nodes - 1]->dst->data), [&](char * row) {
        const char * source = from[next];
        if (next++ % static_cast<size_t>(nth) == static_cast<size_t>(ith)) {
            for (int64_t i = 0; i < out.ne[0]; ++i) {
                std::memcpy(row + i * out.nb[0], source + i * out.nb[0], element);
            }
        }
    });
}

} // namespace ggml_ext::test
