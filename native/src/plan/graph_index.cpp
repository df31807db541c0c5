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
    while ((size_t(1) << bits) < 2 * static_cast<size_t>(n_nodes())) {
        ++bits;
    }
    slots_.assign(size_t(1) << bits, slot{ nullptr, -1 });
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

// Enters `reader` as the last reader of all that it reads, unless a node at or behind `unless_from` is entered.
void graph_index::note_reads(int reader, int unless_from) const {
    const auto note = [&](const ggml_tensor * tensor) {
        const int i = find(tensor);
        if (i >= 0 && last_use_[i] < unless_from) {
            last_use_[i] = reader;
        }
    };
    const ggml_tensor * n = node(reader);
    for (const ggml_tensor * src : n->src) {
        if (!src || src == n) {
            continue; // a conversion names itself as its destination
        }
        note(src);
        if (src->view_src) {
            note(owner(src));
        }
    }
    if (n->view_src) {
        note(owner(n));
    }
}

void graph_index::build_last_use() const {
    last_use_.assign(n_nodes(), -1);
    for (int i = 0; i < n_nodes(); ++i) {
        note_reads(i, n_nodes());
    }
}

int graph_index::last_use(int i) const {
    if (last_use_.empty()) {
        build_last_use();
    }
    int last = std::max(i, last_use_[i]);
    if (node(i)->view_src) {
        const int root = find(owner(node(i)));
        if (root >= 0) {
            last = std::max(last, last_use_[root]);
        }
    }
    return last;
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
    if (!slots_.empty()) {
        for (int i = first; i < before; ++i) {
            slot & s = slot_for(node(i));
            if (s.position != duplicate) {
                s.position = i;
            }
        }
    }
    if (!last_use_.empty()) {
        std::rotate(last_use_.begin() + first, last_use_.begin() + middle, last_use_.begin() + before);
        // Whatever has its last reader among the moved or crossed nodes is read by one of them: enter those anew, in order.
        for (int i = first; i < before; ++i) {
            note_reads(i, before);
        }
    }
}

} // namespace ggml_ext::plan
