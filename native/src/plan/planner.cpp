#include "plan/planner.h"

#include "plan/fingerprint.h"
#include "plan/graph.h"
#include "plan/inject.h"
#include "plan/legality.h"
#include "plan/select.h"
#include "support/status.h"

#include <algorithm>
#include <cstring>

namespace ggml_ext::plan {

namespace {

// Splits below this size get no added sources: ggml's hash table has room for a quarter more tensors than the graph has.
constexpr int MIN_NODES_TO_INJECT = 4;

struct match_result {
    const kernel_ptr *     k     = nullptr;
    int                    count = 0;
    std::vector<injection> places;
};

// of a callback, with its message; the first one fails the next compute
void note_failure(plan & p, const kernel & k, const char * what, int status) {
    k.counters.failed.fetch_add(1, std::memory_order_relaxed);
    if (p.error == GGML_EXT_STATUS_SUCCESS) {
        p.error         = status;
        p.error_message = format("kernel %s: %s failed: %s", k.name.c_str(), what, reason_or_name(status));
        p.of_callback   = true;
    }
}

class builder {
public:
    builder(const planner & owner, graph_index & index, const print128 & print, const snapshot & kernels)
        : device_(owner.device), backend_(owner.backend), kernels_(kernels), g_(*owner.device.ggml), p_(std::make_shared<plan>()),
          index_(index) {
        p_->epoch         = kernels.epoch;
        p_->base          = index.graph()->nodes;
        p_->print         = print;
        p_->print_ordered = print;
    }

    plan_ptr build(bool fuse, bool may_reorder, bool may_inject) {
        const ggml_cgraph & graph = *index_.graph();
        may_inject_               = may_inject && graph.n_nodes >= MIN_NODES_TO_INJECT;
        p_->nodes.assign(graph.nodes, graph.nodes + graph.n_nodes);
        if (fuse && may_reorder && !kernels_.optimizers.empty()) {
            optimize();
            if (!std::equal(p_->nodes.begin(), p_->nodes.end(), graph.nodes)) {
                p_->nodes.assign(graph.nodes, graph.nodes + graph.n_nodes);
                p_->print_ordered = print_nodes(graph.nodes, graph.n_nodes);
            }
        }
        describe_nodes();
        note_writes();
        ggml_ext_graph view(index_, false);
        const bool     rules = fuse && !kernels_.rules.empty();
        for (int i = 0; i < index_.n_nodes();) {
            const int32_t op = index_.node(i)->op;
            if (!rules && op != g_.op.custom && !kernels_.serves(op)) {
                ++i; // most nodes of most graphs
            } else {
                i += plan_at(i, rules ? &view : nullptr);
            }
        }
        return p_;
    }

    static void make_step(plan & p, const attached_device & device, ggml_backend * backend, const kernel_ptr & k, int first, int count,
                          bool fused, std::vector<std::unique_ptr<step>> & out);

private:
    void describe_nodes() {
        constexpr size_t NAME = sizeof(ggml_tensor::name);
        p_->names.reset(new char[p_->nodes.size() * (NAME + 1)]);
        p_->labels.resize(p_->nodes.size());
        label * out  = p_->labels.data();
        char *  name = p_->names.get();
        for (const ggml_tensor * node : p_->nodes) {
            *out++ = {op_name_of(g_, node), static_cast<uint32_t>(name - p_->names.get()), node->type, {node->ne[0], node->ne[1], node->ne[2], node->ne[3]}};
            std::memcpy(name, node->name, NAME); // all of it, a constant size, is faster than what is used
            name += strnlen(name, NAME);
            *name++ = '\0';
        }
    }

    void note_writes() {
        for (int i = 0; device_.is_cpu && i < index_.n_nodes(); ++i) {
            const ggml_tensor * node = index_.node(i);
            if (node->view_src != nullptr && index_.ops().effect_of(node) != effect::none && owner(node)->op == g_.op.none) {
                p_->writes.push_back(i);
            }
        }
    }

    void optimize() {
        for (const kernel_ptr & k : kernels_.optimizers) {
            if (!k->active()) {
                continue;
            }
            ggml_ext_graph view(index_, true);
            set_last_error("");
            if (const int status = k->desc.optimize(&view, k->desc.user_data); status != GGML_EXT_STATUS_SUCCESS) {
                note_failure(*p_, *k, "optimize", status);
            }
        }
    }

    // number of nodes that are decided
    int plan_at(int i, const ggml_ext_graph * view) {
        const ggml_tensor * node = index_.node(i);
        if (!(node->flags & FLAG_COMPUTE)) {
            return 1; // ggml leaves it out
        }
        const op_registration * op     = operator_of(g_, node);
        const auto &            offers = kernels_.singles(op != nullptr ? -1 : node->op, op);
        match_result            match  = view != nullptr ? best_match(i, *view) : match_result{};
        const bool              ask    = !offers.empty() && (match.k == nullptr || offers.front()->desc.priority > (*match.k)->desc.priority);
        const selection         chosen = ask ? select_kernel(device_, kernels_, node, i, &p_->refusals) : selection{nullptr, true};
        kernel_ptr              single = chosen.k;
        if (single != nullptr && match.k != nullptr && single->desc.priority <= (*match.k)->desc.priority) {
            single = nullptr;
        }

        if (single != nullptr) {
            make_step(*p_, device_, backend_, single, i, 1, false, p_->steps);
            want_workspace(*p_->steps.back());
            return 1;
        }
        if (match.k != nullptr) {
            make_step(*p_, device_, backend_, *match.k, i, match.count, true, p_->steps);
            for (int j = i; j + 1 < i + match.count; ++j) {
                p_->steps.back()->uses.push_back(index_.use_count(j));
            }
            ++p_->n_groups;
            p_->injections.insert(p_->injections.end(), match.places.begin(), match.places.end());
            want_workspace(*p_->steps.back());
            return match.count;
        }
        // Computed natively, an operation that only a kernel can do would end the process. Not by the device's answer alone: a program may
        // place nodes on a device that computes them and does not say so.
        const bool * held    = held_answers::find(device_, node);
        const bool   was_yes = held != nullptr && *held;
        if ((op != nullptr || ((chosen.switched_off || was_yes) && !chosen.native)) && p_->error == GGML_EXT_STATUS_SUCCESS) {
            p_->error         = GGML_EXT_STATUS_UNSUPPORTED;
            p_->error_message = format("OP-3: no kernel of device %s serves node %d, %s %s%s%s", g_.fn.ggml_backend_dev_name(device_.device), i,
                                       op != nullptr ? "operator" : "which the device itself does not support,", op_name_of(g_, node),
                                       p_->refusals.empty() ? "" : "; ", p_->refusals.latest().c_str());
        }
        return 1;
    }

    void want_workspace(const step & s) {
        p_->workspace_size = std::max(p_->workspace_size, s.prepared.workspace_size);
        if (s.k->wants_workspace.load(std::memory_order_relaxed) && may_inject_ && free_slots(p_->nodes[s.first + s.count - 1]) > 0) {
            p_->injections.push_back({s.first + s.count - 1, -1, 0});
        }
    }

    bool may_begin(const kernel & k, const ggml_tensor * node) const {
        return k.desc.op == nullptr || (k.op != nullptr ? operator_of(g_, node) == k.op : node->op == k.op_id);
    }

    // The written rule: the highest priority wins, then the longest match, then the earliest registration.
    match_result best_match(int i, const ggml_ext_graph & view) {
        match_result best;
        for (const kernel_ptr & k : kernels_.rules) { // sorted by priority, then registration
            if (best.k != nullptr && k->desc.priority < (*best.k)->desc.priority) {
                break;
            }
            if (!may_begin(*k, index_.node(i))) {
                continue;
            }
            match_result      candidate;
            const std::string reason = try_match(k, i, view, candidate);
            if (!reason.empty()) {
                p_->refusals.add(i, k->name, reason.c_str());
            } else if (candidate.count > best.count) {
                best = std::move(candidate);
            }
        }
        return best;
    }

    std::string try_match(const kernel_ptr & k, int i, const ggml_ext_graph & view, match_result & out) {
        if (!k->active()) {
            return "switched off";
        }
        set_last_error("");
        const int count = k->desc.match(&view, i, k->desc.user_data);
        if (count < 0) {
            note_failure(*p_, *k, "match", status_of_answer(count));
            return format("match failed: %s", last_error());
        }
        if (count == 0) {
            const char * reason = last_error();
            return *reason != '\0' ? reason : "no match";
        }
        std::string reason = count > index_.n_nodes() - i
                                 ? format("FUSE-1: a match of %d nodes from node %d leaves the graph of %d nodes", count, i, index_.n_nodes())
                                 : check_legal(index_, i, count);
        for (int j = i; reason.empty() && j < i + count; ++j) {
            if (has_opaque_source(device_, index_.node(j))) {
                reason = format("FUSE-2: %s: %s", index_.label(j).c_str(), OPAQUE_SOURCE);
            }
        }
        if (reason.empty() && may_inject_ && !keep_alive_places(index_, i, count, out.places)) {
            reason = format("FUSE-4: node %d has too few free sources to keep the group's inputs allocated", i + count - 1);
        }
        if (!reason.empty()) {
            k->counters.refused.fetch_add(1, std::memory_order_relaxed);
            return reason;
        }
        out.k     = &k;
        out.count = count;
        return "";
    }

    const attached_device & device_;
    ggml_backend *          backend_;
    const snapshot &        kernels_;
    const abi::ggml &       g_;
    plan_ptr                p_;
    graph_index &           index_;
    bool                    may_inject_ = false;
};

// prepare's answer; of a failure, which the plan notes: no state, no workspace, no phases
ggml_ext_prepared ask_prepare(plan & p, const step & s) {
    const kernel &                k = *s.k;
    const ggml_ext_prepare_params params{sizeof(params), s.exec.backend, s.count, s.views.get()};
    ggml_ext_prepared             answer{sizeof(answer), nullptr, 0, 1, 0};
    set_last_error("");
    int status = k.desc.prepare(&params, &answer, k.desc.user_data);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check_prepared(answer);
        if (status == GGML_EXT_STATUS_SUCCESS) {
            return answer;
        }
        const std::string reason = last_error();
        if (k.desc.destroy != nullptr && answer.state != nullptr) {
            k.desc.destroy(answer.state, k.desc.user_data);
        }
        set_last_error(reason.c_str());
    }
    note_failure(p, k, "prepare", status);
    return {sizeof(answer), nullptr, 0, 0, 0};
}

void take_prepared(step & s, const ggml_ext_prepared & answer) {
    s.prepared            = answer;
    s.unprepared          = answer.n_phases == 0;
    s.exec.state          = answer.state;
    s.exec.workspace_size = answer.workspace_size;
    if (answer.workspace_size > 0) {
        s.k->wants_workspace.store(true, std::memory_order_relaxed);
    }
}

void builder::make_step(plan & p, const attached_device & device, ggml_backend * backend, const kernel_ptr & k, int first, int count,
                        bool fused, std::vector<std::unique_ptr<step>> & out) {
    auto s = std::make_unique<step>();
    s->k   = k;
    k->n_plan_steps.fetch_add(1); // step's destructor takes it back
    s->first                = first;
    s->count                = count;
    s->fused                = fused;
    s->print                = print_step(p.nodes.data(), first, count);
    s->views                = kept_nodes(*device.ggml, p.nodes.data() + first, count, p.memory);
    s->prepared.struct_size = sizeof(s->prepared);
    s->prepared.n_phases    = 1;
    s->exec.struct_size     = sizeof(s->exec);
    s->exec.backend         = backend;
    s->exec.n_nodes         = count;
    s->exec.nodes           = s->views.get();
    if (k->desc.prepare != nullptr) {
        take_prepared(*s, ask_prepare(p, *s));
    }
    k->counters.planned.fetch_add(1, std::memory_order_relaxed);
    out.push_back(std::move(s));
}

} // namespace

plan_ptr planner::before_allocation(graph_index & graph, const print128 & print, const snapshot & kernels, bool fuse, bool stale) const {
    plan_ptr p           = builder(*this, graph, print, kernels).build(fuse, !stale, !stale);
    p->before_allocation = true;
    p->stale             = stale;
    return p;
}

plan_ptr planner::at_compute(graph_index & graph, const print128 & print, const snapshot & kernels) const {
    return builder(*this, graph, print, kernels).build(false, false, false);
}

void planner::prepare_again(plan & p, std::mutex & observers) const {
    p.error       = GGML_EXT_STATUS_SUCCESS;
    p.of_callback = p.error_told = false;
    p.exec_data.reset();
    for (const auto & s : p.steps) {
        if (s->unprepared) {
            const ggml_ext_prepared     answer = ask_prepare(p, *s);
            std::lock_guard<std::mutex> lock(observers);
            take_prepared(*s, answer);
            s->workspace_in_leaf = s->workspace_in_leaf && answer.workspace_size <= p.leaf_size;
            p.workspace_size     = std::max(p.workspace_size, answer.workspace_size);
        }
    }
}

void planner::split_group(plan & p, size_t step_index, const snapshot & kernels, std::mutex & observers) const {
    const step &                       group = *p.steps[step_index];
    std::vector<std::unique_ptr<step>> singles;
    refusal_list                       refusals;
    size_t                             workspace_size = p.workspace_size;
    for (int i = group.first; i < group.first + group.count; ++i) {
        if (const kernel_ptr k = select_kernel(device, kernels, p.nodes[i], i, &refusals).k) {
            builder::make_step(p, device, backend, k, i, 1, false, singles);
            workspace_size = std::max(workspace_size, singles.back()->prepared.workspace_size);
        }
    }
    refusals.add(group.first, group.k->name, "FUSE-4: the output shares storage with an input of the group");
    p.exec_data.reset();

    std::unique_ptr<step> dropped; // its destroy is called without the lock
    {
        std::lock_guard<std::mutex> lock(observers);
        const auto                  at = p.steps.begin() + static_cast<ptrdiff_t>(step_index);
        dropped                        = std::move(*at);
        p.steps.insert(p.steps.erase(at), std::make_move_iterator(singles.begin()), std::make_move_iterator(singles.end()));
        for (size_t i = 0; i < refusals.size(); ++i) {
            p.refusals.add(refusals.node(i), refusals.why(i).kernel, refusals.why(i).reason.c_str());
        }
        p.workspace_size = workspace_size;
        --p.n_groups;
    }
}

} // namespace ggml_ext::plan
