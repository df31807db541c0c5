// C entries: statistics and plan copies.

#include "exec/runtime.h"
#include "plan/backend_plans.h"
#include "plan/copy.h"
#include "plan/select.h"
#include "support/status.h"

using namespace ggml_ext;

namespace {

int find_backend(ggml_backend * backend, std::shared_ptr<attached_backend> & out) {
    out = backend == nullptr ? nullptr : runtime::get().find(backend);
    return out != nullptr ? GGML_EXT_STATUS_SUCCESS
                          : fail(GGML_EXT_STATUS_NOT_FOUND, "backend %p is not attached", static_cast<void *>(backend));
}

template <typename Item> const Item * at(const std::vector<Item> & items, int32_t index, const char * what) {
    if (index < 0 || static_cast<size_t>(index) >= items.size()) {
        fail(GGML_EXT_STATUS_NOT_FOUND, "%s %d: the plan has %zu", what, index, items.size());
        return nullptr;
    }
    return &items[index];
}

std::unique_ptr<ggml_ext_plan> copy_plan(const abi::ggml & g, ggml_backend * backend, const plan::plan & p) {
    auto copy               = std::make_unique<ggml_ext_plan>();
    copy->backend           = g.fn.ggml_backend_name(backend);
    copy->refusals          = p.refusals;
    copy->workspace_size    = p.workspace_size;
    copy->before_allocation = p.before_allocation;
    copy->n_computed        = p.n_computed.load();
    for (const plan::label & l : p.labels) {
        copy->nodes.push_back({&p.names[l.name], l.op, l.type, {l.ne[0], l.ne[1], l.ne[2], l.ne[3]}});
    }
    int        next   = 0;
    const auto native = [&](int end) {
        if (end > next) {
            copy->steps.push_back({next, end - next, "", false, 0, copy->n_computed, 0, 0});
        }
    };
    for (const auto & s : p.steps) {
        native(s->first);
        copy->steps.push_back({s->first, s->count, s->k->name, s->fused, s->prepared.workspace_size, s->executed.load(), s->time_ns.load(), s->timed.load()});
        next = s->first + s->count;
    }
    native(static_cast<int>(p.nodes.size()));
    return copy;
}

} // namespace

int ggml_ext_get_backend_stats(ggml_backend * backend, ggml_ext_backend_stats * stats) {
    return guarded([&]() -> int {
        std::shared_ptr<attached_backend> attached;
        if (const int status = find_backend(backend, attached); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        const plan::plan_stats & s = attached->plans->stats;
        return fill_struct(stats,
                           {0, s.planned.load(), s.planned_late.load(), s.computed.load(), s.groups.load(), s.singly.load(),
                            s.plan_time_ns.load(), s.workspace_size.load(), s.recorded.load(), s.reused.load(), s.replayed.load()},
                           "stats");
    });
}

int ggml_ext_plan_single(ggml_backend_device * device, const ggml_tensor * node, ggml_ext_plan ** out) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (device == nullptr || node == nullptr || out == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", device == nullptr ? "device" : node == nullptr ? "node"
                                                                                                                       : "out");
        }
        if (!runtime::get().is_attached(device)) {
            return fail(GGML_EXT_STATUS_NOT_FOUND, "device %s is not attached", runtime::get().ggml().fn.ggml_backend_dev_name(device));
        }
        const attached_device * attached = runtime::find(device);
        const abi::ggml &       g        = *attached->ggml;
        auto                    copy     = std::make_unique<ggml_ext_plan>();
        copy->backend                    = g.fn.ggml_backend_dev_name(device);
        copy->nodes.push_back({node->name, op_name_of(g, node), node->type, {node->ne[0], node->ne[1], node->ne[2], node->ne[3]}});
        const snapshot_cell::pin kernels(attached->kernels);
        const plan::selection    chosen = plan::being_selected(*attached, node) // KERNEL-2
                                              ? plan::selection{nullptr, attached->native_supports(node)}
                                              : plan::select_kernel(*attached, *kernels, node, 0, &copy->refusals);
        if (chosen.k != nullptr || chosen.native) {
            copy->steps.push_back({0, 1, chosen.k != nullptr ? chosen.k->name : "", false, 0, 0, 0, 0});
        }
        *out = copy.release();
        return GGML_EXT_STATUS_SUCCESS;
    });
}

int ggml_ext_plan_copy(ggml_backend * backend, int32_t index, ggml_ext_plan ** out) {
    return guarded([&]() -> int {
        std::shared_ptr<attached_backend> attached;
        if (const int status = find_backend(backend, attached); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (out == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "out is NULL");
        }
        std::unique_ptr<ggml_ext_plan> copy;
        const size_t                   n = attached->plans->visit(index, [&](const plan::plan & p) {
            copy = copy_plan(runtime::get().ggml(), backend, p);
        });
        if (copy == nullptr) {
            return fail(GGML_EXT_STATUS_NOT_FOUND, "plan %d: the backend has %zu", index, n);
        }
        *out = copy.release();
        return GGML_EXT_STATUS_SUCCESS;
    });
}

void ggml_ext_plan_free(ggml_ext_plan * plan) {
    delete plan;
}

int ggml_ext_plan_get_info(const ggml_ext_plan * plan, ggml_ext_plan_info * info) {
    if (plan == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "plan is NULL");
    }
    return fill_struct(info,
                       {0, plan->backend.c_str(), static_cast<int32_t>(plan->nodes.size()), static_cast<int32_t>(plan->steps.size()),
                        static_cast<int32_t>(plan->refusals.size()), plan->workspace_size, plan->before_allocation, plan->n_computed},
                       "info");
}

int ggml_ext_plan_get_node(const ggml_ext_plan * plan, int32_t index, ggml_ext_plan_node * node) {
    if (plan == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "plan is NULL");
    }
    const auto * n = at(plan->nodes, index, "node");
    return n == nullptr ? static_cast<int>(GGML_EXT_STATUS_NOT_FOUND)
                        : fill_struct(node, {0, n->name.c_str(), n->op.c_str(), n->type, {n->ne[0], n->ne[1], n->ne[2], n->ne[3]}}, "node");
}

int ggml_ext_plan_get_step(const ggml_ext_plan * plan, int32_t index, ggml_ext_plan_step * step) {
    if (plan == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "plan is NULL");
    }
    const auto * s = at(plan->steps, index, "step");
    return s == nullptr ? static_cast<int>(GGML_EXT_STATUS_NOT_FOUND)
                        : fill_struct(step,
                                      {0, s->first, s->count, s->kernel.empty() ? nullptr : s->kernel.c_str(), s->fused, s->workspace_size,
                                       s->executed, s->time_ns, s->timed},
                                      "step");
}

int ggml_ext_plan_get_refusal(const ggml_ext_plan * plan, int32_t index, ggml_ext_plan_refusal * refusal) {
    if (plan == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "plan is NULL");
    }
    const plan::refusal_list & all = plan->refusals;
    if (index < 0 || static_cast<size_t>(index) >= all.size()) {
        return fail(GGML_EXT_STATUS_NOT_FOUND, "refusal %d: the plan has %zu", index, all.size());
    }
    const auto & why = all.why(static_cast<size_t>(index));
    return fill_struct(refusal, {0, all.node(static_cast<size_t>(index)), why.kernel.c_str(), why.reason.c_str()}, "refusal");
}
