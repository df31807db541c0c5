// What planning and the compute hook cost, against stock ggml in the same run, interleaved: graphs of units SQR, SCALE, ADD, SILU
// are allocated by the scheduler with nothing registered, with overrides, and with fused groups.
//   GGML_EXT_TEST_GGML_DIR=<folder of stock ggml> plan-bench [ROUNDS [ROW]]
// prints a Markdown table: the least of 10 allocations a round, in microseconds of CPU time (others' work only ever adds to a time).

#include "exec/runtime.h"
#include "ggml-ext.h"
#include "interpose/hooks.h"
#include "plan/backend_plans.h"
#include "support/stock_ggml.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <memory>
#include <utility>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// CPU time of this thread: what other programs do meanwhile does not count
double now_us() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

void require(bool condition, const char * what) {
    if (!condition) {
        std::fprintf(stderr, "plan-bench: %s: %s\n", what, ggml_ext_last_error());
        std::exit(1);
    }
}

struct unit_graph {
    ggml_context * ctx = nullptr;
    ggml_cgraph *  g   = nullptr;

    // the first `n_marked` units carry the names that the kernels below look for
    unit_graph(int n_nodes, int n_marked) {
        const auto & s      = stock();
        ctx                 = s.base.ggml_init({static_cast<size_t>(n_nodes + 64) * 512 + s.base.ggml_graph_overhead_custom(n_nodes + 16, false), nullptr, true});
        g                   = s.base.ggml_new_graph_custom(ctx, n_nodes + 16, false);
        const int64_t ne[1] = {8};
        ggml_tensor * h     = s.base.ggml_new_tensor(ctx, TYPE_F32, 1, ne);
        s.base.ggml_set_input(h);
        for (int i = 0; i < n_nodes / 4; ++i) {
            ggml_tensor * side = s.ggml_sqr(ctx, h);
            s.base.ggml_build_forward_expand(g, side);
            ggml_tensor * sum = s.base.ggml_add(ctx, s.ggml_scale(ctx, h, 0.5f), side);
            h                 = s.ggml_silu(ctx, sum);
            if (i < n_marked) {
                s.base.ggml_set_name(sum, "marked");
                s.base.ggml_set_name(h, "marked");
            }
            s.base.ggml_build_forward_expand(g, h);
        }
        s.base.ggml_set_output(h);
    }
    ~unit_graph() { stock().base.ggml_free(ctx); }
    unit_graph(const unit_graph &)             = delete;
    unit_graph & operator=(const unit_graph &) = delete;
};

int32_t marked(const ggml_ext_node * node, void *) {
    return std::strcmp(node->dst->name, "marked") == 0 ? 1 : 0;
}

int32_t match_pair(const ggml_ext_graph * g, int32_t first, void *) {
    const ggml_ext_node * add = ggml_ext_graph_node(g, first + 1);
    return add != nullptr && std::strcmp(add->op, "ADD") == 0 && marked(add, nullptr) != 0 ? 2 : 0;
}

int nothing(const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) {
    return 0;
}

// One thread: planning is what is measured, and threads that wait for each other would disturb it.
ggml_backend * new_backend() {
    const auto &   s       = stock();
    ggml_backend * backend = s.base.ggml_backend_dev_init(s.cpu, nullptr);
    auto           set     = reinterpret_cast<void (*)(ggml_backend *, int)>(
        s.base.ggml_backend_reg_get_proc_address(s.base.ggml_backend_dev_backend_reg(s.cpu), "ggml_backend_set_n_threads"));
    require(backend != nullptr && set != nullptr, "CPU backend");
    set(backend, 1);
    return backend;
}

double allocate_us(struct ggml_backend_sched * sched, const unit_graph & graph) {
    const auto & s = stock();
    s.ggml_backend_sched_reset(sched);
    const double start = now_us();
    require(s.ggml_backend_sched_alloc_graph(sched, graph.g), "alloc_graph");
    return now_us() - start;
}

int32_t compute_nothing(ggml_backend *, ggml_cgraph *) {
    return 0;
}

// The whole hook of a planned graph, on its way to a native compute that does nothing
double hook_us(ggml_backend * backend, const unit_graph & graph) {
    const auto  attached = runtime::get().find(backend);
    ggml_cgraph view     = *graph.g; // as the split's graph: the same nodes, and an id that stays the same
    view.uid             = UINT64_MAX;
    const auto native    = std::exchange(attached->native_graph_compute, compute_nothing);
    require(hooks::graph_compute(backend, &view) == 0, "the plan's first compute");
    const double start = now_us();
    require(hooks::graph_compute(backend, &view) == 0, "the planned graph's compute");
    const double time              = now_us() - start;
    attached->native_graph_compute = native;
    require(attached->plans->stats.planned_late.load() == 0, "planned before allocation");
    return time;
}

struct times {
    double first = HUGE_VAL, again = HUGE_VAL, hook = HUGE_VAL;
};

// Allocates a graph, then the same graph in the same memory, computes it, and keeps the least time of each; `handle` NULL: nothing is registered.
void measure(ggml_backend * backend, ggml_ext_registration * handle, int n_nodes, int n_marked, times & least) {
    constexpr int               REPEATS = 10;
    const auto &                s       = stock();
    const auto &                planned = runtime::get().find(backend)->plans->stats.planned;
    struct ggml_backend_sched * sched   = s.base.ggml_backend_sched_new(&backend, nullptr, 1, static_cast<size_t>(n_nodes) * 2, false, true);
    for (int i = 0; i < REPEATS; ++i) {
        if (handle != nullptr) {
            require(ggml_ext_set_enabled(handle, true) == GGML_EXT_STATUS_SUCCESS, "set_enabled"); // plans are made anew
        }
        const uint64_t      before     = planned.load();
        const uint64_t      n_plans    = handle != nullptr ? 1 : 0;
        auto                graph      = std::make_unique<unit_graph>(n_nodes, n_marked);
        const ggml_cgraph * same_place = graph->g;
        const double        first      = allocate_us(sched, *graph);
        require(planned.load() == before + n_plans, "a new plan");
        graph.reset();
        graph              = std::make_unique<unit_graph>(n_nodes, n_marked);
        const double again = allocate_us(sched, *graph);
        least.first        = std::min(least.first, first);
        if (graph->g == same_place) {
            require(planned.load() == before + n_plans, "the same plan");
            least.again = std::min(least.again, again);
        }
        require(s.ggml_backend_sched_graph_compute(sched, graph->g) == 0, "compute");
        if (handle != nullptr) {
            least.hook = std::min(least.hook, hook_us(backend, *graph));
        }
    }
    s.base.ggml_backend_sched_free(sched);
}

// One round of both sides, each on a scheduler of its own
void measure(const ggml_ext_kernel_desc & desc, int n_nodes, int n_marked, times & stock_times, times & our_times) {
    ggml_backend *          backend = new_backend();
    ggml_ext_registration * handle  = nullptr;
    measure(backend, nullptr, n_nodes, n_marked, stock_times);
    require(ggml_ext_register_kernel(stock().cpu, &desc, &handle) == GGML_EXT_STATUS_SUCCESS, "register");
    measure(backend, handle, n_nodes, n_marked, our_times);
    stock().base.ggml_backend_free(backend);
    require(ggml_ext_unregister(handle) == GGML_EXT_STATUS_SUCCESS, "unregister");
}

} // namespace

int main(int argc, char ** argv) {
    const ggml_ext_load_params params = stock().load_params();
    require(ggml_ext_load(&params) == GGML_EXT_STATUS_SUCCESS, "load");
    require(ggml_ext_attach_device(stock().cpu) == GGML_EXT_STATUS_SUCCESS, "attach");

    ggml_ext_kernel_desc overrides{}, groups{};
    overrides.struct_size = groups.struct_size = sizeof(ggml_ext_kernel_desc);
    overrides.run = groups.run = nothing;
    overrides.name             = "bench.override";
    overrides.op               = "UNARY";
    overrides.supports         = marked;
    groups.name                = "bench.group";
    groups.op                  = "SCALE";
    groups.match               = match_pair;

    struct row {
        const ggml_ext_kernel_desc * desc;
        const char *                 what;
        int                          n_nodes, n_marked;
        times                        plain, ours;
    };
    row rows[] = {
        {&overrides, "overrides", 1000, 100, {}, {}},
        {&groups, "fused groups", 1000, 200, {}, {}},
        {&groups, "fused groups", 250, 50, {}, {}},
        {&groups, "fused groups", 500, 100, {}, {}},
        {&groups, "fused groups", 2000, 400, {}, {}},
        {&groups, "fused groups", 4000, 800, {}, {}},
    };
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
    const int only   = argc > 2 ? std::atoi(argv[2]) : -1;

    for (int round = 0; round < rounds; ++round) { // a busy minute hurts all rows
        for (row & r : rows) {
            if (only < 0 || &r == rows + only) {
                measure(*r.desc, r.n_nodes, r.n_marked, r.plain, r.ours);
            }
        }
    }
    std::printf("| nodes | registered | stock us | planned us | difference us | stock, again us | plan found us | difference us | compute hook us |\n"
                "|---|---|---|---|---|---|---|---|---|\n");
    for (const row & r : rows) {
        std::printf("| %d | %d %s | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", r.n_nodes, r.n_marked, r.what, r.plain.first,
                    r.ours.first, r.ours.first - r.plain.first, r.plain.again, r.ours.again, r.ours.again - r.plain.again, r.ours.hook);
    }
    return 0;
}
