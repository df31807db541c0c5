#include "exec/plan_snapshot.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace ggml_ext::exec {

namespace {

// tensors that nodes read or lie in and that are no nodes of the plan, in the order of first use
std::vector<const ggml_tensor *> outside(const plan::plan & p) {
    std::unordered_map<const ggml_tensor *, bool> known;
    for (const ggml_tensor * node : p.nodes) {
        known.emplace(node, true);
    }
    std::vector<const ggml_tensor *> found;
    const auto                       add = [&](const ggml_tensor * t) {
        if (t != nullptr && known.emplace(t, true).second) {
            found.push_back(t);
        }
    };
    for (const ggml_tensor * node : p.nodes) {
        std::for_each(node->src, node->src + GGML_EXT_MAX_SRC, add);
        add(node->view_src);
    }
    return found;
}

} // namespace

void plan_snapshot::take(const plan::plan & p, const ggml_cgraph * graph) {
    tensors_.clear();
    const auto add = [this](const ggml_tensor * t) {
        tensors_.push_back({t, {}});
        std::memcpy(tensors_.back().bytes, static_cast<const void *>(t), sizeof(record::bytes));
    };
    std::for_each(p.nodes.begin(), p.nodes.end(), add);
    n_nodes_           = p.nodes.size();
    const auto sources = outside(p);
    std::for_each(sources.begin(), sources.end(), add);
    use_counts_.clear();
    for (const ggml_tensor * node : p.nodes) {
        use_counts_.push_back(abi::graph_use_count(graph, node));
    }
    workspaces_.clear();
    for (const auto & s : p.steps) {
        workspaces_.push_back(s->exec.workspace);
    }
    uid_ = graph->uid;
}

bool plan_snapshot::matches(const plan::plan & p, const ggml_cgraph * graph) const {
    for (size_t i = 0; i < workspaces_.size(); ++i) {
        if (p.steps[i]->exec.workspace != workspaces_[i]) {
            return false;
        }
    }
    const auto same_address = [](const record & r) {
        return std::memcmp(&r.tensor->data, r.bytes + offsetof(ggml_tensor, data), sizeof(void *)) == 0;
    };
    if (uid_ != 0 && graph->uid == uid_) {
        return std::all_of(tensors_.begin(), tensors_.end(), same_address);
    }
    // nodes first: only if they read what they read then, the tensors outside are alive
    const auto same = [](const record & r) { return std::memcmp(static_cast<const void *>(r.tensor), r.bytes, sizeof(r.bytes)) == 0; };
    if (!std::all_of(tensors_.begin(), tensors_.end(), same)) {
        return false;
    }
    for (size_t i = 0; i < n_nodes_; ++i) {
        if (abi::graph_use_count(graph, p.nodes[i]) != use_counts_[i]) {
            return false;
        }
    }
    return true;
}

plan_key::plan_key(const plan::plan & p, const ggml_cgraph * graph) {
    std::unordered_map<const ggml_tensor *, uint64_t> places;
    for (const ggml_tensor * node : p.nodes) {
        places.emplace(node, places.size() + 1);
    }
    const auto sources = outside(p);
    for (const ggml_tensor * t : sources) {
        places.emplace(t, places.size() + 1);
    }
    const auto add         = [this](uint64_t word) { words_.push_back(word); };
    const auto add_pointer = [&](const void * pointer) { add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer))); };
    const auto add_words   = [&](const void * data, size_t n) {
        const size_t at = words_.size();
        words_.resize(at + n);
        std::memcpy(&words_[at], data, n * sizeof(uint64_t));
    };
    const auto place_of   = [&](const ggml_tensor * t) { return t == nullptr ? 0 : places.at(t); };
    const auto add_tensor = [&](const ggml_tensor * t) {
        add(static_cast<uint64_t>(static_cast<uint32_t>(t->type)) << 32 | static_cast<uint32_t>(t->op));
        add(static_cast<uint64_t>(static_cast<uint32_t>(t->flags)));
        add_words(t->ne, 4);
        add_words(t->nb, 4);
        add_words(t->op_params, 8);
        add_pointer(t->buffer);
        add_pointer(t->data);
        add(t->view_offs);
    };
    add(p.nodes.size());
    for (const ggml_tensor * node : p.nodes) {
        add_tensor(node);
        add(place_of(node->view_src));
        for (const ggml_tensor * src : node->src) {
            add(place_of(src));
        }
        add(static_cast<uint64_t>(static_cast<uint32_t>(abi::graph_use_count(graph, node))));
    }
    for (const ggml_tensor * t : sources) {
        add_tensor(t);
    }
    add(p.steps.size());
    for (const auto & s : p.steps) {
        add(s->k->order); // never given twice
        add(static_cast<uint64_t>(s->first) << 32 | static_cast<uint64_t>(s->count));
        add_pointer(s->exec.workspace);
        add(s->prepared.workspace_size);
    }
}

} // namespace ggml_ext::exec
