#include "plan/backend_plans.h"

#include "abi/injected.h"
#include "plan/fingerprint.h"
#include "plan/graph_index.h"
#include "plan/inject.h"
#include "support/status.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <iterator>

namespace ggml_ext::plan {

namespace {

uint64_t now_ns() {
    return static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

bool strip_all(ggml_cgraph * graph) {
    bool any = false;
    for (int i = 0; i < graph->n_nodes; ++i) {
        any |= strip_injected(graph->nodes[i]);
    }
    return any;
}

// FUSE-5: with several pipeline copies the scheduler marks each copy of an input as both input and output, and names it
// "<backend>#<tensor>#<copy>".
bool has_pipeline_copies(const ggml_cgraph * graph) {
    constexpr int32_t both = FLAG_INPUT | FLAG_OUTPUT;
    for (int i = 0; i < graph->n_nodes; ++i) {
        for (const ggml_tensor * src : graph->nodes[i]->src) {
            if (src != nullptr && (src->flags & both) == both && std::strchr(src->name, '#') != nullptr) {
                return true;
            }
        }
    }
    return false;
}

// true where a node that owns its storage already has an address
bool has_addresses(const ggml_cgraph * graph) {
    return std::any_of(graph->nodes, graph->nodes + graph->n_nodes,
                       [](const ggml_tensor * node) { return node->view_src == nullptr && node->data != nullptr; });
}

using places = std::vector<injection>;
using place  = places::const_iterator;

// Whether what groups do not write has as many readers as when they were found legal.
bool same_readers(const plan & p, const ggml_cgraph * graph) {
    return std::all_of(p.steps.begin(), p.steps.end(), [&](const std::unique_ptr<step> & s) {
        return std::equal(s->uses.begin(), s->uses.end(), p.nodes.begin() + s->first,
                          [graph](int32_t uses, const ggml_tensor * node) { return abi::graph_use_count(graph, node) == uses; });
    });
}

// Walks two lists, both in the order of nodes: visit(node, its places in `a`, its places in `b`).
template <typename Visit> void for_each_node(const places & a, const places & b, Visit && visit) {
    place at_a = a.begin(), at_b = b.begin();
    while (at_a != a.end() || at_b != b.end()) {
        const int   node  = at_b == b.end() || (at_a != a.end() && at_a->node < at_b->node) ? at_a->node : at_b->node;
        const auto  other = [node](const injection & x) { return x.node != node; };
        const place end_a = std::find_if(at_a, a.end(), other);
        const place end_b = std::find_if(at_b, b.end(), other);
        visit(node, at_a, end_a, at_b, end_b);
        at_a = end_a;
        at_b = end_b;
    }
}

// what stays the same for every batch size: operations and who reads whom
uint64_t structure_of(const graph_index & index) {
    uint64_t   h   = static_cast<uint64_t>(index.n_nodes());
    const auto add = [&h](uint64_t v) { h = (h ^ v) * 0x9e3779b97f4a7c15ull, h ^= h >> 29; };
    for (int i = 0; i < index.n_nodes(); ++i) {
        const ggml_tensor * node = index.node(i);
        add(static_cast<uint64_t>(node->op));
        for (int j = 0; j < GGML_EXT_MAX_SRC && node->src[j] != nullptr; ++j) {
            add(static_cast<uint64_t>(index.find(node->src[j])) + 2);
        }
    }
    return h;
}

bool ranges_overlap(const ggml_ext_tensor & a, const ggml_ext_tensor & b) {
    const char * a0 = static_cast<const char *>(a.data);
    const char * b0 = static_cast<const char *>(b.data);
    return a0 != nullptr && b0 != nullptr && a0 < b0 + b.nbytes && b0 < a0 + a.nbytes;
}

// What only the last node reads may share storage with the output, as ggml's own in-place operations do.
bool output_overlaps_inputs(const step & s) {
    const ggml_ext_node * const * nodes  = s.exec.nodes;
    const ggml_ext_tensor &       output = *nodes[s.count - 1]->dst;
    for (int i = 0; i + 1 < s.count; ++i) {
        for (int j = 0; j < nodes[i]->n_src; ++j) {
            const ggml_ext_tensor * src = nodes[i]->src[j];
            const bool              own = src == nullptr || std::any_of(nodes, nodes + s.count, [&](const ggml_ext_node * n) {
                                 return n->dst->tensor == src->tensor;
                             });
            if (!own && ranges_overlap(output, *src)) {
                return true;
            }
        }
    }
    return false;
}

} // namespace

plan_ptr backend_plans::find(ggml_tensor * const * base, int n_nodes, bool before_allocation) const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const plan_ptr & p : plans_) {
        if (p->base == base && p->before_allocation == before_allocation && static_cast<int>(p->nodes.size()) == n_nodes) {
            return p;
        }
    }
    return nullptr;
}

void backend_plans::remember(plan_ptr p) {
    std::vector<plan_ptr> dropped; // destroyed outside the lock
    {
        std::lock_guard<std::mutex> lock(mutex_);
        plans_.remove_if([&](const plan_ptr & other) {
            const bool replaced = other->base == p->base && (p->before_allocation || other->before_allocation == p->before_allocation) &&
                                  (p->before_allocation || other->nodes.size() == p->nodes.size());
            if (replaced) {
                if (other->nodes.size() == p->nodes.size()) {
                    other->injected = false; // taken off before the new plan was made
                }
                dropped.push_back(other);
            }
            return replaced;
        });
        plans_.push_front(std::move(p));
        while (plans_.size() > MAX_PLANS) {
            dropped.push_back(plans_.back());
            plans_.pop_back();
        }
    }
}

void backend_plans::plan_before_allocation(ggml_cgraph * graph) {
    if (leaf_pool::get().ever_used()) {
        strip_all(graph);
    }
    if (!planner_.device.ggml->has_cgraph || graph->n_nodes == 0 || planner_.device.kernels.empty()) {
        return;
    }
    const uint64_t           start = now_ns();
    const snapshot_cell::pin kernels(planner_.device.kernels);
    const bool               stale = has_addresses(graph);

    const print128 print = print_nodes(graph->nodes, graph->n_nodes);

    plan_ptr p = find(graph->nodes, graph->n_nodes, true);
    if (p != nullptr && p->epoch == kernels->epoch && p->error == GGML_EXT_STATUS_SUCCESS && p->stale == stale && !p->groups_split &&
        (print == p->print || print == p->print_ordered) && same_readers(*p, graph)) {
        std::copy(p->nodes.begin(), p->nodes.end(), graph->nodes); // the order that was chosen
    } else {
        graph_index index(*planner_.device.ops, graph);
        const bool  fuse = !has_pipeline_copies(graph) && (planner_.device.cuda == nullptr || planner_.device.cuda->fusion);
        p                = planner_.before_allocation(index, print, *kernels, fuse, stale);
        if (!stale) {
            apply_learned_needs(*p, index);
        }
        stats.planned.fetch_add(1, std::memory_order_relaxed);
        remember(p);
    }
    p->verified_uid   = 0;
    p->allocated_with = graph;
    p->addresses.clear();
    if (!stale) {
        inject(*p);
    }
    stats.plan_time_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
}

// ggml's scheduler ends the process where it gets no memory while it allocates a graph. So workspace that may not be there is left
// out of its buffers: before the compute the backend tries to get it alone, and that may fail.
bool backend_plans::may_be_allocated(size_t workspace) const {
    if (workspace <= SURELY_THERE) {
        return true;
    }
    if (workspace > PTRDIFF_MAX - SURELY_THERE) {
        return false;
    }
    const auto & fn   = planner_.device.ggml->fn;
    const size_t need = workspace + SURELY_THERE; // the graph's tensors are in the same buffer
    if (planner_.device.is_cpu) {
        ggml_backend_buffer * trial = fn.ggml_backend_buft_alloc_buffer(fn.ggml_backend_get_default_buffer_type(planner_.backend), need);
        if (trial == nullptr) {
            return false;
        }
        fn.ggml_backend_buffer_free(trial); // untouched: no page of it was ever there
        return true;
    }
    // Not tried there: the buffer that this one takes the place of is freed only then.
    size_t free = 0, total = 0;
    fn.ggml_backend_dev_memory(planner_.device.device, &free, &total);
    return need <= free + largest_leaf_;
}

void backend_plans::apply_learned_needs(plan & p, const graph_index & index) {
    p.leaf_size = p.workspace_size;
    if (p.injections.empty() && learned_.empty()) {
        return;
    }
    if (learned_.size() > MAX_STRUCTURES) {
        learned_.clear();
    }
    needs &      known   = learned_[structure_of(index)];
    const size_t largest = std::max(known.workspace_size, p.workspace_size);
    p.leaf_holds_it      = may_be_allocated(largest);
    p.leaf_size          = p.leaf_holds_it ? largest : 0;
    if (p.leaf_holds_it) {
        known.workspace_size = largest;
        largest_leaf_        = std::max(largest_leaf_, largest);
    }
    if (known.places == p.injections) {
        return;
    }
    places learned, all;
    for_each_node(known.places, p.injections, [&](int node, place known_begin, place known_end, place own_begin, place own_end) {
        const auto learned_begin = static_cast<ptrdiff_t>(learned.size());
        learned.insert(learned.end(), known_begin, known_end);
        for (place own = own_begin; own != own_end; ++own) {
            // counts, not a set: the same source may be added twice on purpose
            if (std::count(learned.begin() + learned_begin, learned.end(), *own) < std::count(own_begin, own_end, *own)) {
                learned.push_back(*own);
            }
        }
        const auto is_there = [&p](const injection & x) { return x.from_node < 0 || p.nodes[x.from_node]->src[x.from_slot] != nullptr; };
        const auto keeps    = std::count_if(learned.begin() + learned_begin, learned.end(), [](const injection & x) { return x.from_node >= 0; });
        if (keeps + 1 <= free_slots(p.nodes[node])) {
            std::copy_if(learned.begin() + learned_begin, learned.end(), std::back_inserter(all), is_there);
        } else {
            all.insert(all.end(), own_begin, own_end);
        }
    });
    known.places = std::move(learned);
    p.injections = std::move(all);
}

plan_ptr backend_plans::plan_for_compute(ggml_cgraph * graph) {
    plan_ptr p = find(graph->nodes, graph->n_nodes, true);
    if (p != nullptr && !p->injected && graph->uid != 0 && graph->uid == p->verified_uid) {
        return p;
    }
    if (leaf_pool::get().ever_used()) {
        strip_all(graph); // another graph's plan may have been found
    }
    if (p != nullptr) {
        p->injected     = false;
        const bool same = std::equal(p->nodes.begin(), p->nodes.end(), graph->nodes) &&
                          std::all_of(p->steps.begin(), p->steps.end(), [&](const std::unique_ptr<step> & s) {
                              return print_step(graph->nodes, s->first, s->count) == s->print;
                          }) &&
                          same_readers(*p, graph);
        if (same) {
            p->verified_uid = graph->uid;
            return p;
        }
    }
    if (planner_.device.kernels.empty() || !planner_.device.ggml->has_cgraph) {
        return nullptr;
    }
    const uint64_t           start = now_ns();
    const snapshot_cell::pin kernels(planner_.device.kernels);
    const print128           print = print_nodes(graph->nodes, graph->n_nodes);
    p                              = find(graph->nodes, graph->n_nodes, false);
    if (p == nullptr || p->epoch != kernels->epoch || !(p->print == print)) {
        graph_index index(*planner_.device.ops, graph);
        p = planner_.at_compute(index, print, *kernels);
        stats.planned_late.fetch_add(1, std::memory_order_relaxed);
        remember(p);
    }
    stats.plan_time_ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
    return p;
}

int backend_plans::check(plan & p) {
    if (p.of_callback && p.error_told) {
        planner_.prepare_again(p, mutex_);
    }
    p.error_told = true;
    return p.error == GGML_EXT_STATUS_SUCCESS ? GGML_EXT_STATUS_SUCCESS : fail(p.error, "%s", p.error_message.c_str());
}

void backend_plans::refresh(plan & p) {
    const auto as_before = [](const address & a) { return a.tensor->data == a.data; };
    if (!p.addresses.empty() && std::all_of(p.addresses.begin(), p.addresses.end(), as_before)) {
        return;
    }
    p.addresses.clear();
    for (size_t i = 0; i < p.steps.size(); ++i) {
        step & s = *p.steps[i];
        s.views.refresh_addresses();
        if (s.fused && (s.k->flags & GGML_EXT_KERNEL_OVERLAP_SAFE) == 0 && output_overlaps_inputs(s)) {
            const snapshot_cell::pin kernels(planner_.device.kernels);
            planner_.split_group(p, i, *kernels, mutex_);
            p.groups_split = true;
            stats.singly.fetch_add(1, std::memory_order_relaxed);
            --i; // the single steps that took its place are refreshed too
            continue;
        }
        for (const ggml_ext_tensor & tensor : s.views) {
            p.addresses.push_back({tensor.tensor, tensor.data});
        }
    }
    ++p.addresses_version;
}

void backend_plans::count_compute(const plan & p) {
    stats.computed.fetch_add(1, std::memory_order_relaxed);
    stats.groups.fetch_add(p.n_groups, std::memory_order_relaxed);
}

void backend_plans::drop_all() {
    std::list<plan_ptr>         dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    dropped.swap(plans_);
}

} // namespace ggml_ext::plan
