// struct ggml_cgraph, which is private to ggml: its public accessors, and a graph of known content, must agree with the mirror.

#include "abi/probes.h"

#include <cstring>

namespace ggml_ext::abi {

namespace {

constexpr int N_NODES    = 8;
constexpr int N_LEAFS    = 2;
constexpr int GRAPH_SIZE = 12;

struct known_graph {
    ggml_tensor * a;
    ggml_tensor * b;
    ggml_tensor * nodes[N_NODES];
    ggml_tensor * outside;
    ggml_cgraph * graph;
};

// a and b are read by node 0, a by all others as well; each node is read by the next one
known_graph make_graph(const functions & fn, const probe_context & ctx, bool grads) {
    known_graph k;
    k.a       = ctx.new_f32(4);
    k.b       = ctx.new_f32(4);
    k.outside = ctx.new_f32(4);
    for (int i = 0; i < N_NODES; i++) {
        k.nodes[i] = fn.ggml_add(ctx.get(), i == 0 ? k.b : k.nodes[i - 1], k.a);
    }
    k.graph = fn.ggml_new_graph_custom(ctx.get(), GRAPH_SIZE, grads);
    fn.ggml_build_forward_expand(k.graph, k.nodes[N_NODES - 1]);
    return k;
}

bool probe_fields(const functions & fn, const probe_context & ctx, const known_graph & k, std::string & why) {
    const ggml_cgraph & g = *k.graph;
    if (!expect(ctx.contains(&g, sizeof(g)) &&
                    reinterpret_cast<const char *>(fn.ggml_graph_nodes(k.graph)) - reinterpret_cast<const char *>(&g) == sizeof(g),
                "the size is not 96 bytes", why) ||
        !expect(g.size == GRAPH_SIZE && fn.ggml_graph_size(k.graph) == GRAPH_SIZE, "size", why) ||
        !expect(g.n_nodes == N_NODES && fn.ggml_graph_n_nodes(k.graph) == N_NODES, "n_nodes", why) ||
        !expect(g.nodes == fn.ggml_graph_nodes(k.graph), "nodes", why) || !expect(g.n_leafs == N_LEAFS, "n_leafs", why) ||
        !expect(ctx.contains(g.leafs, N_LEAFS * sizeof(ggml_tensor *)), "leafs", why)) {
        return false;
    }
    for (int i = 0; i < N_NODES; i++) {
        if (!expect(g.nodes[i] == k.nodes[i] && fn.ggml_graph_node(k.graph, i) == k.nodes[i], "order of nodes", why)) {
            return false;
        }
    }
    return expect((g.leafs[0] == k.a && g.leafs[1] == k.b) || (g.leafs[0] == k.b && g.leafs[1] == k.a), "content of leafs", why) &&
           expect(g.order == 0, "order", why) && expect(g.uid == 0, "uid", why);
}

bool probe_use_counts(const probe_context & ctx, const known_graph & k, std::string & why) {
    const ggml_cgraph &          g   = *k.graph;
    const ggml_hash_set_mirror & set = g.visited;
    if (!expect(set.size >= N_NODES + N_LEAFS && set.size <= 4096, "size of the hash set", why) ||
        !expect(ctx.contains(set.keys, set.size * sizeof(set.keys[0])), "keys of the hash set", why) ||
        !expect(ctx.contains(set.used, (set.size + 31) / 32 * sizeof(set.used[0])), "bits of the hash set", why) ||
        !expect(ctx.contains(g.use_counts, set.size * sizeof(g.use_counts[0])), "use_counts", why)) {
        return false;
    }
    int n_used = 0;
    for (size_t i = 0; i < set.size; i++) {
        n_used += static_cast<int>(set.used[i / 32] >> (i % 32) & 1);
    }
    bool counts = graph_use_count(&g, k.a) == N_NODES && graph_use_count(&g, k.b) == 1 && graph_use_count(&g, k.outside) == 0;
    for (int i = 0; i < N_NODES; i++) {
        counts = counts && graph_use_count(&g, k.nodes[i]) == (i < N_NODES - 1 ? 1 : 0);
    }
    return expect(n_used == N_NODES + N_LEAFS, "number of keys in the hash set", why) && expect(counts, "use counts", why);
}

bool probe_grads(const probe_context & ctx, const known_graph & without, const known_graph & with, std::string & why) {
    const ggml_cgraph & g = *with.graph;
    return expect(without.graph->grads == nullptr && without.graph->grad_accs == nullptr, "grads of a graph without them", why) &&
           expect(ctx.contains(g.grads, GRAPH_SIZE * sizeof(ggml_tensor *)) &&
                      ctx.contains(g.grad_accs, GRAPH_SIZE * sizeof(ggml_tensor *)) && g.grads != g.grad_accs,
                  "grads of a graph with them", why);
}

// ggml takes a copy with other nodes for a graph. It may copy the struct by vector instructions: hence the alignment.
bool probe_copy(const functions & fn, const known_graph & k, std::string & why) {
    ggml_tensor *           nodes[3] = {k.nodes[2], k.nodes[5], k.nodes[3]};
    alignas(16) ggml_cgraph copy     = *k.graph;
    copy.nodes                       = nodes;
    copy.n_nodes                     = 3;
    copy.size                        = 5;
    return expect(fn.ggml_graph_nodes(&copy) == nodes && fn.ggml_graph_n_nodes(&copy) == 3 && fn.ggml_graph_size(&copy) == 5 &&
                      fn.ggml_graph_node(&copy, 1) == nodes[1] && fn.ggml_graph_node(&copy, -1) == nodes[2],
                  "accessors do not follow a modified copy", why);
}

} // namespace

bool probe_graph(const ggml & g, std::string & why) {
    const size_t needed = 2 * g.fn.ggml_graph_overhead_custom(GRAPH_SIZE, true) + 32 * g.fn.ggml_tensor_overhead();
    if (!expect(needed <= probe_context::SIZE, "a graph of 12 nodes takes too much memory", why)) {
        return false;
    }
    probe_context     ctx(g.fn);
    const known_graph plain = make_graph(g.fn, ctx, false);
    const known_graph grads = make_graph(g.fn, ctx, true);
    return probe_fields(g.fn, ctx, plain, why) && probe_use_counts(ctx, plain, why) && probe_grads(ctx, plain, grads, why) &&
           probe_copy(g.fn, plain, why);
}

} // namespace ggml_ext::abi
