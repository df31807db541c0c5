#include "plan/inject.h"

#include <algorithm>
#include <cstring>

namespace ggml_ext::plan {

leaf_pool & leaf_pool::get() {
    static leaf_pool * instance = new leaf_pool(); // outlives static destruction: graphs may
    return *instance;
}

ggml_tensor * leaf_pool::take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
        ggml_tensor * leaf = free_.back();
        free_.pop_back();
        return leaf;
    }
    all_.emplace_back();
    ever_used_.store(true, std::memory_order_relaxed);
    return &all_.back().tensor;
}

void leaf_pool::give_back(ggml_tensor * leaf) {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(leaf);
}

int free_slots(const ggml_tensor * node) {
    int last = -1;
    for (int i = 0; i < GGML_EXT_MAX_SRC; ++i) {
        if (node->src[i] != nullptr) {
            last = i;
        }
    }
    return GGML_EXT_MAX_SRC - 1 - last;
}

namespace {

// ggml's test for an in-place operation taking over a source's block (ggml-alloc)
bool same_layout(const ggml_tensor * a, const ggml_tensor * b) {
    return a->type == b->type && std::memcmp(a->ne, b->ne, sizeof(a->ne)) == 0 && std::memcmp(a->nb, b->nb, sizeof(a->nb)) == 0;
}

} // namespace

bool keep_alive_places(const graph_index & index, int first, int count, std::vector<injection> & out) {
    const int           last  = first + count - 1;
    const ggml_tensor * final = index.node(last);
    const auto          seen  = [&](int i, int j) { // at an earlier place of the group
        const ggml_tensor * src = index.node(i)->src[j];
        for (int before = first; before <= i; ++before) {
            ggml_tensor * const * sources = index.node(before)->src;
            ggml_tensor * const * end     = sources + (before < i ? GGML_EXT_MAX_SRC : j);
            if (std::find(sources, end, src) != end) {
                return true;
            }
        }
        return false;
    };
    out.clear();
    out.reserve(GGML_EXT_MAX_SRC);
    for (int i = first; i < last; ++i) {
        for (int j = 0; j < GGML_EXT_MAX_SRC; ++j) {
            const ggml_tensor * src = index.node(i)->src[j];
            if (src == nullptr || seen(i, j)) {
                continue;
            }
            const int position = index.find(src);
            if (position >= first && position <= last) {
                continue; // the group's own
            }
            const ggml_tensor * storage = owner(src);
            if (storage->data != nullptr || (storage->flags & FLAG_OUTPUT) != 0) {
                continue; // not this allocator's, or never freed
            }
            // Later use is not looked at: the reader may be another shape's, and one more reader does no harm.
            const bool direct = std::find(final->src, final->src + GGML_EXT_MAX_SRC, src) != final->src + GGML_EXT_MAX_SRC;
            out.push_back({last, i, j});
            if (!direct && same_layout(final, src)) {
                out.push_back({last, i, j});
            }
        }
    }
    return out.empty() || static_cast<int>(out.size()) + 1 <= free_slots(final); // none needed: none missing
}

void inject(plan & p) {
    if (p.injections.empty()) {
        return;
    }
    if (p.leaf == nullptr) {
        p.leaf = leaf_pool::get().take();
    }
    ggml_tensor & leaf = *p.leaf;
    leaf               = ggml_tensor{};
    leaf.type          = TYPE_I8;
    leaf.extra         = &INJECTED;
    std::strcpy(leaf.name, "ggml_ext_workspace");
    const int64_t size = static_cast<int64_t>(p.leaf_size + WORKSPACE_ALIGNMENT);
    leaf.ne[0]         = size;
    leaf.ne[1] = leaf.ne[2] = leaf.ne[3] = 1;
    leaf.nb[0]                           = 1;
    leaf.nb[1] = leaf.nb[2] = static_cast<size_t>(size);
    leaf.nb[3]              = 0; // no node's layout, so that none takes the leaf's block for its output

    int previous = -1;
    int slot     = 0;
    for (const injection & place : p.injections) {
        ggml_tensor * node = p.nodes[place.node];
        if (place.node != previous) {
            slot              = GGML_EXT_MAX_SRC - free_slots(node);
            node->src[slot++] = &leaf;
            previous          = place.node;
        }
        if (place.from_node >= 0) {
            node->src[slot++] = p.nodes[place.from_node]->src[place.from_slot];
        }
    }
    auto place = p.injections.begin();
    for (const auto & s : p.steps) {
        const int output     = s->first + s->count - 1;
        place                = std::find_if(place, p.injections.end(), [output](const injection & x) { return x.node >= output; });
        s->workspace_in_leaf = p.leaf_holds_it && place != p.injections.end() && place->node == output;
    }
    p.injected = true;
}

} // namespace ggml_ext::plan
