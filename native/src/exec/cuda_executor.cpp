#include "exec/cuda_executor.h"

#include "cuda/graph_edges.h"
#include "plan/backend_plans.h"
#include "plan/inject.h"
#include "support/status.h"

#include <algorithm>

namespace ggml_ext::exec {

using cuda::check;

// What became of a plan's recording; kept with the plan.
struct cuda_executor::plan_state {
    enum {
        cold,
        warm,
        recorded,
        refused
    } state                                        = cold;
    bool                          may_become_graph = false;
    bool                          reusable         = false;
    plan_snapshot                 seen; // warm, recorded: what the latest execution depended on
    plan_key                      key;  // the same for other plans, where reusable
    recording_ptr                 latest;
    size_t                        workspace_size = 0;
    std::shared_ptr<replay_cache> recordings;

    // Native ranges, one before each step and one behind the last, maybe empty; each with a free place in front for a stamp.
    std::vector<ggml_tensor *>          nodes;
    std::vector<std::pair<size_t, int>> ranges; // position in `nodes`, number of nodes

    ~plan_state() { retire(); }

    void retire() {
        if (latest != nullptr && reusable) {
            recordings->retire(std::move(latest));
        }
        latest.reset();
    }
};

struct cuda_executor::call {
    attached_backend & backend;
    plan::plan &       p;
    ggml_cgraph *      graph;
    plan_state &       state;
};

cuda_executor::cuda_executor(const attached_device & device, ggml_backend * backend)
    : g_(*device.ggml), device_(device.cuda), backend_(backend), stream_(g_, device_, backend), own_(g_, backend), blas_(g_, backend),
      launcher_(device_) {}

int cuda_executor::open() {
    const int status = device_->make_current();
    return status == GGML_EXT_STATUS_SUCCESS ? stream_.open() : status;
}

cuda_executor::~cuda_executor() {
    device_->make_current();
    if (stream_.get() != nullptr) {
        g_.fn.ggml_backend_synchronize(backend_);
        stream_.synchronize();
    }
}

// Only what is known to be recordable. The native MUL_MAT_ID may wait for the host in the middle; whether it does is ggml's secret.
bool cuda_executor::may_become_graph(const plan::plan & p) const {
    const bool flagged = std::all_of(p.steps.begin(), p.steps.end(), [](const std::unique_ptr<plan::step> & s) {
        return (s->k->flags & GGML_EXT_KERNEL_CAPTURE_SAFE) != 0;
    });
    return device_->whole_plans && flagged && std::none_of(p.nodes.begin(), p.nodes.end(), [this](const ggml_tensor * node) {
               return node->op == g_.op.mul_mat_id;
           });
}

cuda_executor::plan_state & cuda_executor::state_of(plan::plan & p) {
    if (p.exec_data == nullptr) {
        auto state              = std::make_shared<plan_state>();
        state->may_become_graph = may_become_graph(p);
        state->reusable         = std::all_of(p.steps.begin(), p.steps.end(), [](const std::unique_ptr<plan::step> & s) {
            return (s->k->flags & GGML_EXT_KERNEL_REPLAY_REUSABLE) != 0;
        });
        state->workspace_size   = p.workspace_size;
        state->recordings       = recordings_;
        const auto add_range    = [&](int begin, int end) {
            state->nodes.push_back(nullptr);
            state->ranges.emplace_back(state->nodes.size(), end - begin);
            state->nodes.insert(state->nodes.end(), p.nodes.begin() + begin, p.nodes.begin() + end);
        };
        int next = 0;
        for (const auto & s : p.steps) {
            add_range(next, s->first);
            next = s->first + s->count;
        }
        add_range(next, static_cast<int>(p.nodes.size()));
        while (stamps_.size() < state->ranges.size()) {
            ggml_tensor & stamp = stamps_.emplace_back();
            stamp.op            = g_.op.none;
            stamp.ne[0] = stamp.ne[1] = stamp.ne[2] = stamp.ne[3] = 1;
            stamp.nb[0] = stamp.nb[1] = stamp.nb[2] = stamp.nb[3] = sizeof(float);
        }
        p.exec_data = std::move(state);
    }
    return *static_cast<plan_state *>(p.exec_data.get());
}

bool cuda_executor::needs_own_workspace(const plan::plan & p) {
    return std::any_of(p.steps.begin(), p.steps.end(), [&](const std::unique_ptr<plan::step> & s) {
        return s->prepared.workspace_size != 0 && p.leaf_data(*s) == nullptr;
    });
}

int32_t cuda_executor::compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) {
    failure_.reset();
    cuda::CUstreamCaptureStatus enclosing = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
    if (device_->make_current() != GGML_EXT_STATUS_SUCCESS || stream_.after_native() != GGML_EXT_STATUS_SUCCESS ||
        stream_.capture_status(enclosing) != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    const call                  c{backend, p, graph, state_of(p)};
    const current_backend_scope scope(&backend);
    if (enclosing != cuda::CU_STREAM_CAPTURE_STATUS_NONE) {
        return compute_into(c);
    }
    if (assign_workspace(p, own_) != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    plan_state & s = c.state;
    if (!s.may_become_graph || s.state == plan_state::refused) {
        return compute_step_by_step(c, fragments::plain);
    }
    if (s.state != plan_state::cold && s.seen.matches(p, graph)) {
        return s.state == plan_state::recorded ? replay(c) : record(c);
    }
    s.retire();
    s.state = plan_state::warm;
    s.seen.take(p, graph);
    if (s.reusable) {
        s.key    = plan_key(p, graph);
        s.latest = recordings_->find(s.key);
        if (s.latest != nullptr) {
            s.state = plan_state::recorded;
            backend.plans->stats.reused.fetch_add(1, std::memory_order_relaxed);
            return replay(c);
        }
    }
    return compute_step_by_step(c, fragments::stamped);
}

int32_t cuda_executor::compute_step_by_step(const call & c, fragments how) {
    const int32_t status = run(c, how, false);
    if (status != GGML_COMPUTE_SUCCESS && how == fragments::stamped) {
        c.state.state = plan_state::cold;
    }
    return status;
}

// The caller records a CUDA graph on the backend's stream: what we enqueue becomes part of it.
int32_t cuda_executor::compute_into(const call & c) {
    for (const auto & s : c.p.steps) {
        if ((s->k->flags & GGML_EXT_KERNEL_CAPTURE_SAFE) == 0) {
            fail(GGML_EXT_STATUS_UNSUPPORTED, "CAP-1: the backend's stream is being captured, and kernel %s is not flagged CAPTURE_SAFE",
                 s->k->name.c_str());
            return GGML_COMPUTE_FAILED;
        }
    }
    const bool own = needs_own_workspace(c.p);
    if (own && own_.size() < c.p.workspace_size + plan::WORKSPACE_ALIGNMENT) {
        fail(GGML_EXT_STATUS_UNSUPPORTED,
             "CAP-1: the backend's stream is being captured, and workspace of %zu bytes would have to be allocated: compute the graph once before",
             c.p.workspace_size);
        return GGML_COMPUTE_FAILED;
    }
    if (own) {
        own_.keep(); // the caller's graph will hold its address, for longer than we know
    }
    return assign_workspace(c.p, own_) == GGML_EXT_STATUS_SUCCESS ? run(c, fragments::stamped, false) : GGML_COMPUTE_FAILED;
}

// Nothing is executed while a plan is recorded, so whatever goes wrong then, the plan can still be computed step by step.
int32_t cuda_executor::record(const call & c) {
    const cuda::driver & cu     = *device_->cu;
    cuda::CUgraph        graph  = nullptr;
    cuda::CUgraphExec    exec   = nullptr;
    int                  status = check(cu, cu.cuStreamBeginCapture(stream_.get(), cuda::CU_STREAM_CAPTURE_MODE_RELAXED), "cuStreamBeginCapture");
    if (status == GGML_EXT_STATUS_SUCCESS) {
        const bool        complete = run(c, fragments::stamped, true) == GGML_COMPUTE_SUCCESS;
        const std::string reason   = last_error();
        status                     = check(cu, cu.cuStreamEndCapture(stream_.get(), &graph), "cuStreamEndCapture");
        if (!complete) {
            status = fail(GGML_EXT_STATUS_FAILED, "%s", reason.c_str());
        }
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = cuda::remove_implied_edges(cu, graph);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check(cu, cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
    }
    if (graph != nullptr) {
        cu.cuGraphDestroy(graph);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        c.state.latest = std::make_shared<recording>(recording{std::move(c.state.key), graph_exec(device_, exec), c.state.workspace_size});
        c.state.state  = plan_state::recorded;
        c.backend.plans->stats.recorded.fetch_add(1, std::memory_order_relaxed);
        if (c.state.reusable) {
            recordings_->add(c.state.latest);
        }
        return replay(c);
    }
    log(GGML_EXT_LOG_LEVEL_WARN, "CAP-1: backend %s: a plan of %zu nodes is not recorded as a CUDA graph and runs step by step: %s",
        g_.fn.ggml_backend_name(backend_), c.p.nodes.size(), last_error());
    c.state.state = plan_state::refused;
    failure_.reset();
    return compute_step_by_step(c, fragments::plain);
}

int32_t cuda_executor::replay(const call & c) {
    const cuda::driver & cu = *device_->cu;
    if (check(cu, cu.cuGraphLaunch(c.state.latest->exec.get(), stream_.get()), "cuGraphLaunch") != GGML_EXT_STATUS_SUCCESS ||
        stream_.before_native() != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    for (const auto & s : c.p.steps) {
        count_executed(*s);
    }
    c.backend.plans->stats.replayed.fetch_add(1, std::memory_order_relaxed);
    return GGML_COMPUTE_SUCCESS;
}

// `is_recording`: our stream is the one that is captured, and the backend's joins it by an event.
int32_t cuda_executor::run(const call & c, fragments how, bool is_recording) {
    bool       ours_behind   = false; // our stream does not know of the latest native work
    bool       native_behind = is_recording;
    const auto native        = [&](size_t fragment) -> int32_t {
        if (c.state.ranges[fragment].second == 0) {
            return GGML_COMPUTE_SUCCESS;
        }
        if (native_behind && stream_.before_native() != GGML_EXT_STATUS_SUCCESS) {
            return GGML_COMPUTE_FAILED;
        }
        native_behind                       = false;
        ours_behind                         = true;
        cuda::CUstreamCaptureStatus capture = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
        if (is_recording && (stream_.capture_status(capture) != GGML_EXT_STATUS_SUCCESS || capture != cuda::CU_STREAM_CAPTURE_STATUS_ACTIVE)) {
            fail(GGML_EXT_STATUS_FAILED, "the capture was broken off by a kernel"); // ggml would end the process
            return GGML_COMPUTE_FAILED;
        }
        return run_native(c, fragment, how);
    };
    int32_t result = GGML_COMPUTE_SUCCESS;
    for (size_t i = 0; i < c.p.steps.size() && result == GGML_COMPUTE_SUCCESS; ++i) {
        result = native(i);
        if (result == GGML_COMPUTE_SUCCESS && ours_behind) {
            result      = stream_.after_native() == GGML_EXT_STATUS_SUCCESS ? GGML_COMPUTE_SUCCESS : GGML_COMPUTE_FAILED;
            ours_behind = false;
        }
        if (result == GGML_COMPUTE_SUCCESS) {
            native_behind = true;
            if (run_step(*c.p.steps[i], failure_, !is_recording) != GGML_EXT_STATUS_SUCCESS) {
                result = failure_.result();
            }
        }
    }
    if (result == GGML_COMPUTE_SUCCESS) {
        result = native(c.p.steps.size());
    }
    if (is_recording && result != GGML_COMPUTE_SUCCESS) {
        return result; // the end of the capture sets both streams free
    }
    // both streams end in order: a recording joins here, else the backend waits for us, also after a failure
    const std::string reason = result == GGML_COMPUTE_SUCCESS ? "" : last_error();
    if (is_recording ? ours_behind && stream_.after_native() != GGML_EXT_STATUS_SUCCESS
                     : native_behind && stream_.before_native() != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    if (result != GGML_COMPUTE_SUCCESS) {
        set_last_error(reason.c_str());
    }
    return result;
}

// ggml records graphs of its own, found again by the first node. A stamp in front that is new at every call keeps it from that
// inside our recording; without stamps it may.
int32_t cuda_executor::run_native(const call & c, size_t fragment, fragments how) {
    const auto [first, count] = c.state.ranges[fragment];
    ggml_tensor ** nodes      = c.state.nodes.data() + first;
    if (how == fragments::plain) {
        graph_copy copy(c.graph, nodes, count);
        return c.backend.native_graph_compute(backend_, &copy.graph);
    }
    ggml_tensor & stamp = stamps_[fragment];
    stamp.op_params[0]  = ++stamp_value_;
    nodes[-1]           = &stamp;
    graph_copy copy(c.graph, nodes - 1, count + 1);
    return c.backend.native_graph_compute(backend_, &copy.graph);
}

int cuda_executor::cuda_context(attached_backend & backend, ggml_ext_cuda_context & out) {
    if (current_backend() != &backend) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: the CUDA context service works inside execute of a kernel of this backend only");
    }
    // the thread may be on another GPU: a kernel can have computed there
    const int status = device_->make_current();
    return status == GGML_EXT_STATUS_SUCCESS ? fill_struct(&out, {0, device_->ordinal, stream_.get()}, "out") : status;
}

int cuda_executor::cuda_blas(attached_backend & backend, void ** handle) {
    if (current_backend() != &backend) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: the cuBLAS service works inside execute of a kernel of this backend only");
    }
    if (const int status = device_->make_current(); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (!blas_.is_open()) {
        if (const int status = may_make("SERV-2: cuBLAS is"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (const int status = blas_.open(stream_.get()); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
    }
    *handle = blas_.get();
    return GGML_EXT_STATUS_SUCCESS;
}

int cuda_executor::cuda_launch(const attached_backend & backend, const ggml_ext_cuda_launch_params & params) {
    if (current_backend() != &backend) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "AOT-1: modules' kernels are launched inside execute of a kernel of this backend only");
    }
    const int status = device_->make_current();
    return status == GGML_EXT_STATUS_SUCCESS ? launcher_.launch(stream_.get(), params) : status;
}

int cuda_executor::may_make(const char * what) const {
    cuda::CUstreamCaptureStatus capture = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
    if (const int status = stream_.capture_status(capture); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    return capture == cuda::CU_STREAM_CAPTURE_STATUS_NONE
               ? static_cast<int>(GGML_EXT_STATUS_SUCCESS)
               : fail(GGML_EXT_STATUS_UNSUPPORTED, "%s not made while a stream is captured: compute the graph once before", what);
}

} // namespace ggml_ext::exec
