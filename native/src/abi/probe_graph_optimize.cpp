// Where a backend keeps graph_optimize, for which ggml has no public accessor: only the scheduler calls it. A stub in a live
// backend's table and a graph of two nodes show it, and what the scheduler hands to a backend.

#include "abi/probes.h"

#include <cstring>

namespace ggml_ext::abi {

namespace {

constexpr int     MAX_CANDIDATES  = 4;
constexpr int     GRAPH_SIZE      = 16;
constexpr int32_t DEVICE_TYPE_CPU = 0;

struct call {
    const functions *    fn      = nullptr;
    const ggml_backend * backend = nullptr;
    ggml_tensor *        nodes[2];
    ggml_cgraph *        graph   = nullptr; // the last one that came
    int                  n_fired = 0;
    int                  n_right = 0;       // with the expected nodes
};

thread_local call * current = nullptr;

void stub(ggml_backend * backend, ggml_cgraph * graph) {
    if (current == nullptr) {
        return; // another thread uses this backend: nothing to optimise
    }
    call & c = *current;
    c.n_fired++;
    if (backend != c.backend || c.fn->ggml_graph_n_nodes(graph) != 2 || graph->n_nodes != 2) {
        return;
    }
    c.graph = graph;
    if (graph->nodes == c.fn->ggml_graph_nodes(graph) && graph->nodes[0] == c.nodes[0] && graph->nodes[1] == c.nodes[1] &&
        graph->size == 0 && graph->uid == 0 && graph_use_count(graph, c.nodes[0]) == 1 && graph_use_count(graph, c.nodes[1]) == 0) {
        c.n_right++;
    }
}

// Replaces a table entry for its lifetime.
class replaced_slot {
public:
    replaced_slot(void * object, int word, void * value) : slot(slot_of(object, word)), original(slot) { slot = value; }
    ~replaced_slot() { slot = original; }
    replaced_slot(const replaced_slot &)             = delete;
    replaced_slot & operator=(const replaced_slot &) = delete;

private:
    void *& slot;
    void *  original;
};

// A scheduler with this backend alone and a graph of two nodes for it.
class two_nodes {
public:
    two_nodes(const functions & fn, ggml_backend * backend) : fn(fn), ctx(fn) {
        ggml_tensor * a = ctx.new_f32(16);
        ggml_tensor * b = ctx.new_f32(16);
        fn.ggml_set_input(a);
        fn.ggml_set_input(b);
        nodes[0] = fn.ggml_add(ctx.get(), a, b);
        nodes[1] = fn.ggml_add(ctx.get(), nodes[0], a);
        graph    = fn.ggml_new_graph_custom(ctx.get(), GRAPH_SIZE, false);
        fn.ggml_build_forward_expand(graph, nodes[1]);
        sched = fn.ggml_backend_sched_new(&backend, nullptr, 1, GRAPH_SIZE, false, false);
    }
    ~two_nodes() { fn.ggml_backend_sched_free(sched); }
    two_nodes(const two_nodes &)             = delete;
    two_nodes & operator=(const two_nodes &) = delete;

    bool reserve() { return fn.ggml_backend_sched_reserve(sched, graph); }

    ggml_tensor * nodes[2];

private:
    const functions &    fn;
    probe_context        ctx;
    ggml_cgraph *        graph;
    ggml_backend_sched * sched;
};

// The scheduler gives a graph a new uid at each reserve: of all fields, that one alone changes. (Padding is not kept.)
bool only_uid_differs(const ggml_cgraph & a, const ggml_cgraph & b) {
    return a.uid != b.uid && a.uid != 0 && b.uid != 0 && a.size == b.size && a.n_nodes == b.n_nodes && a.n_leafs == b.n_leafs &&
           a.nodes == b.nodes && a.grads == b.grads && a.grad_accs == b.grad_accs && a.leafs == b.leafs &&
           a.use_counts == b.use_counts && a.visited.size == b.visited.size && a.visited.used == b.visited.used &&
           a.visited.keys == b.visited.keys && a.order == b.order;
}

bool try_word(const functions & fn, ggml_backend * backend, int word, bool & fires, std::string & why) {
    two_nodes work(fn, backend);
    call      c;
    c.fn       = &fn;
    c.backend  = backend;
    c.nodes[0] = work.nodes[0];
    c.nodes[1] = work.nodes[1];

    ggml_cgraph first;
    ggml_cgraph second;
    {
        const replaced_slot patch(backend, word, reinterpret_cast<void *>(&stub));
        current             = &c;
        const bool reserved = work.reserve();
        if (c.graph != nullptr) {
            std::memcpy(&first, c.graph, sizeof(first)); // the scheduler still has it
        }
        const bool again = reserved && work.reserve();
        if (c.graph != nullptr) {
            std::memcpy(&second, c.graph, sizeof(second));
        }
        current = nullptr;
        if (!expect(again, "a graph of two nodes cannot be reserved", why)) {
            return false;
        }
    }
    fires = c.n_fired > 0;
    return !fires || (expect(c.n_fired == 2 && c.n_right == 2, "it does not get the two nodes of a graph", why) &&
                      expect(only_uid_differs(first, second), "uid of a scheduled graph", why));
}

bool find_graph_optimize(ggml & g, ggml_backend_device * device, ggml_backend * backend, std::string & why) {
    const functions & fn = g.fn;
    if (!expect(fn.ggml_backend_dev_type(device) == DEVICE_TYPE_CPU && fn.ggml_backend_get_device(backend) == device,
                "it needs a backend of a CPU device", why)) {
        return false;
    }
    // the table ends where the backend's device follows
    for (int word = g.slot.backend_event_wait + 1; word <= g.slot.backend_event_wait + MAX_CANDIDATES; word++) {
        if (slot_of(backend, word) == device) {
            break;
        }
        bool fires = false;
        if (!try_word(fn, backend, word, fires, why)) {
            return false;
        }
        if (fires) {
            g.slot.backend_graph_optimize = word;
            return true;
        }
    }
    why = "no entry behind event_wait is called for a graph";
    return false;
}

} // namespace

void probe_graph_optimize(ggml & g, ggml_backend_device * device, ggml_backend * backend) {
    if (!g.has_cgraph || g.graph_optimize_probed) {
        return;
    }
    std::string why;
    g.graph_optimize_probed = find_graph_optimize(g, device, backend, why);
    if (!g.graph_optimize_probed) {
        g.has_cgraph = false;
        g.note += (g.note.empty() ? "" : "; ") + std::string("graph_optimize: ") + why + "; no planning, no fusion";
    }
}

} // namespace ggml_ext::abi
