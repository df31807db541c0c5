// Extension steps on the CPU backend. A step in task form becomes proxy nodes of ggml's op CUSTOM, one for each phase, so that a
// mixed graph is one native compute: ggml's threads run native nodes and our tasks, and its barrier separates the phases. A step
// in whole form splits the graph.

#include "exec/cpu_executor.h"

#include "exec/runtime.h"
#include "plan/effects.h"
#include "support/status.h"

#include <algorithm>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#    include <sanitizer/tsan_interface.h>
#endif
#include <utility>

namespace ggml_ext::exec {

namespace {

struct task {
    plan::step * s       = nullptr;
    failure *    f       = nullptr;
    int          phase   = 0;
    bool         counted = false;   // the last phase counts the execution
    task *       next    = nullptr; // behind the barrier
};

// ggml's barrier orders all tasks of a phase before those of the next. ggml is not built with the thread sanitizer, which
// therefore does not see that; it is told here. Tasks of one phase stay unordered for it, as they are.
class barrier_annotation {
public:
#if defined(__SANITIZE_THREAD__)
    explicit barrier_annotation(const task & t) : next_(t.next) { __tsan_acquire(const_cast<task *>(&t)); }
    ~barrier_annotation() {
        if (next_ != nullptr) {
            __tsan_release(next_);
        }
    }
    barrier_annotation(const barrier_annotation &)             = delete;
    barrier_annotation & operator=(const barrier_annotation &) = delete;

private:
    task * next_;
#else
    explicit barrier_annotation(const task &) {}
#endif
};

void run_task(ggml_tensor * /* dst */, int ith, int nth, void * userdata) {
    const task &                              t = *static_cast<const task *>(userdata);
    [[maybe_unused]] const barrier_annotation annotation(t);
    // the graph's thread count is the largest of all nodes' n_tasks: a proxy limits its own
    const int most = t.s->prepared.n_tasks;
    const int n    = most > 0 && most < nth ? most : nth;
    if (ith >= n || t.f->any()) {
        return;
    }
    const kernel &   k = *t.s->k;
    const step_timer timer(*t.s, ith == 0 && profiling());
    set_last_error("");
    const int status = k.desc.run(&t.s->exec, t.phase, ith, n, k.desc.user_data);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        t.f->report(k, status);
    }
    if (ith == 0 && t.counted) {
        count_executed(*t.s);
    }
}

void report_write(ggml_tensor * dst, int ith, int /* nth */, void * /* userdata */) {
    if (ith == 0) {
        runtime::get().changes().add_where_kept(dst->data, runtime::get().ggml().fn.ggml_nbytes(dst));
    }
}

void set_custom(ggml_tensor & proxy, int32_t op_custom, custom_function function, int n_tasks, void * userdata) {
    const int32_t tasks = n_tasks > 0 ? n_tasks : -1; // GGML_N_TASKS_MAX
    proxy.op            = op_custom;
    std::memset(proxy.src, 0, sizeof(proxy.src));
    std::memset(proxy.op_params, 0, sizeof(proxy.op_params));
    set_custom_params(proxy, function, tasks, userdata);
}

// By node: does it write a leaf that a step reads, so that a kernel may keep a copy of it? Empty where none does.
std::vector<bool> writes_to_report(const plan::plan & p) {
    std::vector<bool> found;
    for (const int i : p.writes) {
        const ggml_tensor * leaf  = plan::owner(p.nodes[i]);
        const auto          reads = [&](const std::unique_ptr<plan::step> & s) {
            return std::any_of(p.nodes.begin() + s->first, p.nodes.begin() + s->first + s->count, [leaf](const ggml_tensor * node) {
                return std::find(node->src, node->src + GGML_EXT_MAX_SRC, leaf) != node->src + GGML_EXT_MAX_SRC;
            });
        };
        if (std::any_of(p.steps.begin(), p.steps.end(), reads)) {
            found.resize(p.nodes.size());
            found[i] = true;
        }
    }
    return found;
}

struct segment {
    int          begin = 0, end = 0; // in program::nodes
    plan::step * whole = nullptr;    // after them
};

} // namespace

struct cpu_executor::program {
    std::deque<ggml_tensor>    proxies;
    std::deque<task>           tasks;
    std::vector<ggml_tensor *> outputs; // of the proxies, to refresh their addresses
    uint64_t                   addresses_version = 0; // of the plan's addresses that the proxies have
    std::vector<ggml_tensor *> nodes;
    std::vector<segment>       segments;
    failure                    f;
};

cpu_executor::cpu_executor(const abi::ggml & g, ggml_backend * backend) : g_(g), own_(g, backend) {}

std::shared_ptr<cpu_executor::program> cpu_executor::build(plan::plan & p) const {
    auto       program   = std::make_shared<cpu_executor::program>();
    const auto add_proxy = [&](ggml_tensor * output, custom_function function, int n_tasks, void * userdata) {
        program->proxies.push_back(*output);
        set_custom(program->proxies.back(), g_.op.custom, function, n_tasks, userdata);
        program->nodes.push_back(&program->proxies.back());
        program->outputs.push_back(output);
    };
    const std::vector<bool> reported = writes_to_report(p);
    segment                 open;
    int                     next     = 0;
    const auto              add_next = [&](bool native) {
        if (native) {
            program->nodes.push_back(p.nodes[next]);
        }
        if (!reported.empty() && reported[next]) {
            add_proxy(p.nodes[next], report_write, 1, nullptr);
        }
        ++next;
    };
    for (const auto & s : p.steps) {
        while (next < s->first) {
            add_next(true);
        }
        if (s->k->desc.execute != nullptr) {
            open.end   = static_cast<int>(program->nodes.size());
            open.whole = s.get();
            program->segments.push_back(open);
            open       = segment{};
            open.begin = static_cast<int>(program->nodes.size());
        } else {
            for (int phase = 0; phase < s->prepared.n_phases; ++phase) {
                program->tasks.push_back({s.get(), &program->f, phase, phase == s->prepared.n_phases - 1, nullptr});
                add_proxy(s->output(p.nodes.data()), run_task, s->prepared.n_tasks, &program->tasks.back());
            }
        }
        while (next < s->first + s->count) {
            add_next(false);
        }
    }
    while (next < static_cast<int>(p.nodes.size())) {
        add_next(true);
    }
    open.end = static_cast<int>(program->nodes.size());
    program->segments.push_back(open);
    for (size_t i = 1; i < program->tasks.size(); ++i) {
        program->tasks[i - 1].next = &program->tasks[i];
    }
    return program;
}

int32_t cpu_executor::compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) {
    if (p.exec_data == nullptr) {
        p.exec_data = build(p);
    }
    auto & program = *static_cast<cpu_executor::program *>(p.exec_data.get());
    program.f.reset();
    if (assign_workspace(p, own_) != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    if (program.addresses_version != p.addresses_version) {
        for (size_t i = 0; i < program.outputs.size(); ++i) {
            program.proxies[i].data   = program.outputs[i]->data;
            program.proxies[i].buffer = program.outputs[i]->buffer;
        }
        program.addresses_version = p.addresses_version;
    }
    const current_backend_scope scope(&backend);
    for (const segment & range : program.segments) {
        if (range.end > range.begin) {
            graph_copy    copy(graph, program.nodes.data() + range.begin, range.end - range.begin);
            const int32_t status = backend.native_graph_compute(backend.backend, &copy.graph);
            if (program.f.any()) {
                return program.f.result();
            }
            if (status != GGML_COMPUTE_SUCCESS) {
                return status;
            }
        }
        if (range.whole != nullptr) {
            parallel_graph_  = graph;
            const int status = run_step(*range.whole, program.f);
            parallel_graph_  = nullptr;
            if (status != GGML_EXT_STATUS_SUCCESS) {
                return program.f.result();
            }
        }
    }
    return GGML_COMPUTE_SUCCESS;
}

namespace {

struct parallel_call {
    ggml_ext_parallel_task task;
    void *                 context;
    std::atomic<int>       status{GGML_EXT_STATUS_SUCCESS};
    std::string            message; // of the thread that set the status
};

void run_parallel(ggml_tensor * /* dst */, int ith, int nth, void * userdata) {
    auto & call = *static_cast<parallel_call *>(userdata);
    set_last_error("");
    const int status   = call.task(call.context, ith, nth);
    int       expected = GGML_EXT_STATUS_SUCCESS;
    if (status != GGML_EXT_STATUS_SUCCESS && call.status.compare_exchange_strong(expected, status)) {
        call.message = last_error();
    }
}

} // namespace

int cpu_executor::parallel(attached_backend & backend, ggml_ext_parallel_task task, void * context) {
    if (parallel_graph_ == nullptr || current_backend() != &backend) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: the CPU parallel service works inside execute of a kernel of this backend only");
    }
    parallel_call call{task, context, {}, {}};
    char          dummy[64] = {};
    ggml_tensor   proxy{};
    proxy.type  = TYPE_F32;
    proxy.flags = FLAG_COMPUTE;
    proxy.ne[0] = proxy.ne[1] = proxy.ne[2] = proxy.ne[3] = 1;
    proxy.nb[0] = proxy.nb[1] = proxy.nb[2] = proxy.nb[3] = sizeof(float);
    proxy.data                                            = dummy;
    set_custom(proxy, g_.op.custom, run_parallel, 0, &call);
    ggml_tensor * nodes[] = {&proxy};
    graph_copy    copy(parallel_graph_, nodes, 1);
    const auto *  outer  = std::exchange(parallel_graph_, nullptr); // a task that asks for the service again is refused
    const int32_t native = backend.native_graph_compute(backend.backend, &copy.graph);
    parallel_graph_      = outer;
    if (native == GGML_COMPUTE_ABORTED) {
        return fail(GGML_EXT_STATUS_ABORTED, "the backend's abort callback asked to stop");
    }
    if (native != GGML_COMPUTE_SUCCESS) {
        return fail(GGML_EXT_STATUS_FAILED, "the backend's compute returned %d", native);
    }
    const int status = call.status.load();
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return fail(status, "%s", call.message.empty() ? "a task of the CPU parallel service failed" : call.message.c_str());
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace ggml_ext::exec
