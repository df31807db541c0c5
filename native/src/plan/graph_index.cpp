#include "plan/graph_index.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace ggml_ext::plan {

namespace {

constexpr int duplicate = -2;

// "node_12", as ggml names what has no name
bool is_automatic_name(const char * name) {
    constexpr char prefix[] = "node_";
    if (std::strncmp(name, prefix, sizeof(prefix) - 1) != 0 || !name[sizeof(prefix) - 1]) {
        return false;
    }
    for (const char * c = name + sizeof(prefix) - 1; *c; ++c) {
        if (!std::isdigit(static_cast<unsigned char>(*c))) {
            return false;
        }
    }
    return true;
}

} // namespace

graph_index::graph_index(const op_table & ops, ggml_cgraph * graph) : ops_(&ops), graph_(graph) {}

graph_index::slot & graph_index::slot_for(const ggml_tensor * tensor) const {
    // Fibonacci hashing: the high bits of the product depend on all bits of the address
    const uint64_t hash = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(tensor)) * 0x9E3779B97F4A7C15u;
    const size_t   mask = slots_.size() - 1;
    size_t         i    = hash >> shift_;
    while (slots_[i].tensor && slots_[i].tensor != tensor) {
        i = (i + 1) & mask;
    }
    return slots_[i];
}

void graph_index::build_positions() const {
    int bits = 4;
    while ((size_t(3) << bits) < 4 * static_cast<size_t>(n_nodes())) { // at most three quarters full
        ++bits;
    }
    slots_.assign(size_t(1) << bits, slot{nullptr, -1});
    shift_ = 64 - bits;
    for (int i = 0; i < n_nodes(); ++i) {
        slot & s   = slot_for(node(i));
        s.position = s.tensor ? duplicate : i;
        s.tensor   = node(i);
    }
}

int graph_index::find(const ggml_tensor * tensor) const {
    if (slots_.empty()) {
        build_positions();
    }
    const slot & s = slot_for(tensor);
    return s.tensor && s.position >= 0 ? s.position : -1;
}

int graph_index::use_count(int i) const {
    return abi::graph_use_count(graph_, node(i));
}

void graph_index::build_hidden_reads() const {
    for (int i = 0; i < n_nodes(); ++i) {
        const ggml_tensor * n               = node(i);
        const ggml_tensor * own             = owner(n);
        bool                has_edge_to_own = own == n;
        for (const ggml_tensor * src : n->src) {
            if (!src) {
                continue;
            }
            const ggml_tensor * root = owner(src);
            has_edge_to_own |= root == own;
            if (root != src && find(src) < 0 && find(root) >= 0) {
                hidden_reads_.push_back({root, n});
            }
        }
        if (!has_edge_to_own && find(own) >= 0) {
            hidden_reads_.push_back({own, n});
        }
    }
    hidden_reads_built_ = true;
}

int graph_index::hidden_reader(int i, int last) const {
    if (!hidden_reads_built_) {
        build_hidden_reads();
    }
    for (const hidden_read & r : hidden_reads_) {
        const int reader = r.owner == node(i) ? find(r.reader) : -1;
        if (reader > last) {
            return reader;
        }
    }
    return -1;
}

std::string graph_index::label(int i) const {
    std::string  text = "node " + std::to_string(i);
    const char * name = node(i)->name;
    if (name[0] && !is_automatic_name(name)) {
        text += " ('" + std::string(name, strnlen(name, sizeof(ggml_tensor::name))) + "')";
    }
    return text;
}

void graph_index::move(int first, int count, int before) {
    const int middle = first + count;
    std::rotate(graph_->nodes + first, graph_->nodes + middle, graph_->nodes + before);
    if (slots_.empty()) {
        return;
    }
    for (int i = first; i < before; ++i) {
        slot & s = slot_for(node(i));
        if (s.position != duplicate) {
            s.position = i;
        }
    }
}

} // namespace ggml_ext::plan
