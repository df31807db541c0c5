// What planning and the compute hook cost, against stock ggml in the same run, interleaved: graphs of units SQR, SCALE, ADD, SILU
// are allocated by the scheduler with nothing registered, with overrides, and with fused groups.
//   GGML_EXT_TEST_GGML_DIR=<folder of stock ggml> plan-bench        prints a Markdown table; times are medians in microseconds of CPU time

#include "ggml-ext.h"
#include "exec/runtime.h"
#include "plan/backend_plans.h"
#include "support/stock_ggml.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// CPU time of this thread: what other programs do meanwhile does not count
double now_us() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double median(std::vector<double> v) {
    std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
    return v[v.size() / 2];
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
        const auto & s = stock();
        ctx = s.base.ggml_init({static_cast<size_t>(n_nodes + 64) * 512 + s.base.ggml_graph_overhead_custom(n_nodes + 16, false), nullptr, true});
        g   = s.base.ggml_new_graph_custom(ctx, n_nodes + 16, false);
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

struct setup {
    const char *            name;
    ggml_ext_kernel_desc    desc{};
    ggml_ext_registration * handle = nullptr;
};

double allocate_us(struct ggml_backend_sched * sched, const unit_graph & graph) {
    const auto & s = stock();
    s.ggml_backend_sched_reset(sched);
    const double start = now_us();
    require(s.ggml_backend_sched_alloc_graph(sched, graph.g), "alloc_graph");
    return now_us() - start;
}

struct result {
    double stock_us, with_us, hook_us;
};

result measure(ggml_backend * backend, ggml_ext_registration * handle, int n_nodes, int n_marked) {
    constexpr int       REPEATS = 101;
    const auto &        s       = stock();
    std::vector<double> plain, with, hook;
    struct ggml_backend_sched * sched = s.base.ggml_backend_sched_new(&backend, nullptr, 1, static_cast<size_t>(n_nodes) * 2, false, true);
    for (int i = 0; i < REPEATS; ++i) {
        require(ggml_ext_set_enabled(handle, false) == GGML_EXT_STATUS_SUCCESS, "set_enabled");
        {
            const unit_graph graph(n_nodes, 0);
            plain.push_back(allocate_us(sched, graph));
        }
        require(ggml_ext_set_enabled(handle, true) == GGML_EXT_STATUS_SUCCESS, "set_enabled");
        const unit_graph graph(n_nodes, n_marked);
        with.push_back(allocate_us(sched, graph));
        require(s.ggml_backend_sched_graph_compute(sched, graph.g) == 0, "compute");
        auto &      plans = *runtime::get().find(backend)->plans;
        ggml_cgraph view  = *graph.g; // as the split's graph: the same nodes, and an id that stays the same
        require(plans.plan_for_compute(&view) != nullptr, "the plan");
        const double start = now_us();
        const auto   p     = plans.plan_for_compute(&view);
        if (p != nullptr) {
            plans.refresh(*p);
        }
        hook.push_back(now_us() - start);
    }
    s.base.ggml_backend_sched_free(sched);
    return {median(plain), median(with), median(hook)};
}

} // namespace

int main() {
    const ggml_ext_load_params params = stock().load_params();
    require(ggml_ext_load(&params) == GGML_EXT_STATUS_SUCCESS, "load");
    require(ggml_ext_attach_device(stock().cpu) == GGML_EXT_STATUS_SUCCESS, "attach");
    ggml_backend * backend = new_backend();

    setup override_silu{"overrides"}, group{"fused groups"};
    override_silu.desc.struct_size = sizeof(ggml_ext_kernel_desc);
    override_silu.desc.name        = "bench.override";
    override_silu.desc.op          = "UNARY";
    override_silu.desc.supports    = marked;
    override_silu.desc.run         = nothing;
    group.desc.struct_size = sizeof(ggml_ext_kernel_desc);
    group.desc.name        = "bench.group";
    group.desc.op          = "SCALE";
    group.desc.match       = match_pair;
    group.desc.run         = nothing;

    std::printf("| nodes | registered | stock alloc us | with ggml-ext us | difference us | ratio | compute hook us |\n|---|---|---|---|---|---|---|\n");
    for (const auto & [which, n_nodes, n_marked] : {std::tuple<setup *, int, int>{&override_silu, 1000, 100},
                                                    {&group, 1000, 200},
                                                    {&group, 250, 50},
                                                    {&group, 500, 100},
                                                    {&group, 2000, 400},
                                                    {&group, 4000, 800}}) {
        require(ggml_ext_register_kernel(stock().cpu, &which->desc, &which->handle) == GGML_EXT_STATUS_SUCCESS, "register");
        const result r = measure(backend, which->handle, n_nodes, n_marked);
        std::printf("| %d | %d %s | %.1f | %.1f | %.1f | %.2f | %.1f |\n", n_nodes, n_marked, which->name, r.stock_us, r.with_us,
                    r.with_us - r.stock_us, r.with_us / r.stock_us, r.hook_us);
        stock().base.ggml_backend_free(backend);
        require(ggml_ext_unregister(which->handle) == GGML_EXT_STATUS_SUCCESS, "unregister");
        backend = new_backend();
    }
    stock().base.ggml_backend_free(backend);
    return 0;
}
