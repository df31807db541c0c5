#include "interpose/hooks.h"

#include "exec/executor.h"
#include "exec/marker.h"
#include "exec/runtime.h"
#include "exec/services.h"
#include "plan/backend_plans.h"
#include "plan/inject.h"
#include "plan/select.h"
#include "support/status.h"

#include <algorithm>

namespace ggml_ext::hooks {

namespace {

// Steps share one workspace and one plan a backend, so that a compute inside another one would take both away.
class computing_scope {
public:
    explicit computing_scope(attached_backend & backend) : backend_(backend), alone_(!backend.computing.exchange(true)) {}
    ~computing_scope() {
        if (alone_) {
            backend_.computing.store(false);
        }
    }
    computing_scope(const computing_scope &)             = delete;
    computing_scope & operator=(const computing_scope &) = delete;

    bool alone() const { return alone_; }

private:
    attached_backend & backend_;
    const bool         alone_;
};

// At its end the leaves that the graph has written are reported to kernels that keep copies of weights, for later graphs.
class writing_scope {
public:
    explicit writing_scope(const plan::plan * p) : p_(p) {}
    ~writing_scope() {
        if (p_ == nullptr) {
            return;
        }
        for (const int i : p_->writes) {
            const ggml_tensor * node = p_->nodes[static_cast<size_t>(i)];
            runtime::get().changes().add_where_kept(node->data, runtime::get().ggml().fn.ggml_nbytes(node));
        }
    }
    writing_scope(const writing_scope &)             = delete;
    writing_scope & operator=(const writing_scope &) = delete;

private:
    const plan::plan * p_;
};

int32_t compute_natively(attached_backend & backend, ggml_cgraph * graph) {
    const uint64_t before = marker_failures();
    const int32_t  status = backend.native_graph_compute(backend.backend, graph);
    // the count is the process', so the failure may be another backend's: this graph must have such a node at all
    const auto has_operator = [&] {
        const abi::ggml & g = *backend.device->ggml;
        return !g.has_cgraph || std::any_of(graph->nodes, graph->nodes + graph->n_nodes,
                                            [&](const ggml_tensor * node) { return operator_of(g, node) != nullptr; });
    };
    if (status == GGML_COMPUTE_SUCCESS && marker_failures() != before && has_operator()) {
        fail(GGML_EXT_STATUS_UNSUPPORTED, "OP-3: the graph has a registered operator that no kernel could run; its output is NaN (see the log)");
        return GGML_COMPUTE_FAILED;
    }
    return status;
}

// the device's own answer or a kernel's; apart, so that supports_op needs no stack
__attribute__((noinline)) bool supports_with_kernels(attached_device & attached, const ggml_tensor * op) {
    if (attached.kernels.empty() || plan::being_selected(attached, op)) {
        return attached.native_supports(op);
    }
    if (const bool * first = plan::held_answers::find(attached, op)) {
        return *first;
    }
    bool      answer = false;
    const int status = guarded([&]() -> int {
        const snapshot_cell::pin kernels(attached.kernels);
        const plan::selection    found = plan::select_kernel(attached, *kernels, op, 0, nullptr);
        // without the graph's layout nothing is planned: only the marker runs, and it serves operators on CPU devices
        const bool runs = attached.ggml->has_cgraph || (attached.is_cpu && operator_of(*attached.ggml, op) != nullptr);
        answer          = found.k == nullptr ? found.native : runs || attached.native_supports(op);
        plan::held_answers::keep(attached, op, answer);
        return GGML_EXT_STATUS_SUCCESS;
    });
    return status == GGML_EXT_STATUS_SUCCESS ? answer : attached.native_supports(op);
}

} // namespace

// Nothing but this little runs for nodes that no kernel is registered for.
bool supports_op(ggml_backend_device * device, const ggml_tensor * op) {
    attached_device & attached = *runtime::find(device);
    if (op->op != attached.ggml->op.custom && !attached.kernels.offers(op->op)) {
        return attached.native_supports_op(device, op);
    }
    return supports_with_kernels(attached, op);
}

ggml_backend * init_backend(ggml_backend_device * device, const char * params) {
    attached_device * attached = runtime::get().find(device);
    ggml_backend *    backend  = attached->native_init_backend(device, params);
    if (backend != nullptr) {
        const int status = guarded([&]() -> int { return runtime::get().attach(backend); });
        if (status != GGML_EXT_STATUS_SUCCESS) {
            log(GGML_EXT_LOG_LEVEL_ERROR, "backend of device %s runs without extensions: %s",
                attached->ggml->fn.ggml_backend_dev_name(device), last_error());
        }
    }
    return backend;
}

void graph_optimize(ggml_backend * backend, ggml_cgraph * graph) {
    const auto attached = runtime::get().find(backend);
    if (attached->native_graph_optimize != nullptr) {
        attached->native_graph_optimize(backend, graph);
    }
    if (attached->reference.load(std::memory_order_relaxed)) {
        return;
    }
    const int status = guarded([&]() -> int {
        attached->plans->plan_before_allocation(graph);
        return GGML_EXT_STATUS_SUCCESS;
    });
    if (status != GGML_EXT_STATUS_SUCCESS) {
        log(GGML_EXT_LOG_LEVEL_ERROR, "planning failed, the graph runs as single operations: %s", last_error());
    }
}

int32_t graph_compute(ggml_backend * backend, ggml_cgraph * graph) {
    const auto attached = runtime::get().find(backend);
    auto &     plans    = *attached->plans;
    int32_t    result   = GGML_COMPUTE_FAILED;
    const int  status   = guarded([&]() -> int {
        set_last_error(""); // a refusal of an earlier query is not this compute's
        const bool          nothing = attached->device->kernels.empty() && !plan::leaf_pool::get().ever_used();
        plan::plan_ptr      p       = nothing ? nullptr : plans.plan_for_compute(graph);
        const writing_scope writing(p.get());
        if (p == nullptr || attached->reference.load(std::memory_order_relaxed)) {
            result = compute_natively(*attached, graph);
            return GGML_EXT_STATUS_SUCCESS;
        }
        if (const int failed = plans.check(*p); failed != GGML_EXT_STATUS_SUCCESS) {
            return failed;
        }
        if (p->steps.empty()) {
            result = compute_natively(*attached, graph);
            return GGML_EXT_STATUS_SUCCESS;
        }
        const computing_scope scope(*attached);
        if (!scope.alone()) {
            return fail(GGML_EXT_STATUS_IN_USE, "backend %s is computing: a kernel does not compute on its own backend, nor do two threads on one",
                           attached->device->ggml->fn.ggml_backend_name(backend));
        }
        p->leaf_is_there = graph == p->allocated_with;
        plans.refresh(*p);
        if (p->error != GGML_EXT_STATUS_SUCCESS) { // of a single kernel's prepare, where a group was split
            return plans.check(*p);
        }
        result = attached->executor->compute(*attached, *p, graph);
        p->n_computed.fetch_add(1, std::memory_order_relaxed);
        plans.count_compute(*p);
        plans.stats.workspace_size.store(attached->executor->workspace_size(), std::memory_order_relaxed);
        return GGML_EXT_STATUS_SUCCESS;
    });
    return status == GGML_EXT_STATUS_SUCCESS ? result : GGML_COMPUTE_FAILED;
}

void backend_free(ggml_backend * backend) {
    const auto attached = runtime::get().remove(backend);
    attached->plans->drop_all();
    attached->executor.reset();
    attached->native_free(backend);
}

void * get_proc_address(struct ggml_backend_reg * reg, const char * name) {
    const patched_registry * patched = runtime::get().find(reg);
    void *                   native  = patched->native_get_proc_address != nullptr ? patched->native_get_proc_address(reg, name) : nullptr;
    void *                   own     = exec::find_service(*patched, name, native);
    return own != nullptr ? own : native;
}

} // namespace ggml_ext::hooks
