#include "exec/executor.h"

#include "plan/inject.h"
#include "support/status.h"

#include <algorithm>
#include <cstdint>

namespace ggml_ext::exec {

namespace {
std::atomic<bool>                     profiling_enabled{false};
thread_local const attached_backend * current = nullptr;
} // namespace

bool profiling() {
    return profiling_enabled.load(std::memory_order_relaxed);
}

void set_profiling(bool enabled) {
    profiling_enabled.store(enabled);
}

const attached_backend * current_backend() {
    return current;
}

current_backend_scope::current_backend_scope(const attached_backend * backend) : before_(current) {
    current = backend;
}

current_backend_scope::~current_backend_scope() {
    current = before_;
}

namespace {
int no_service(const attached_backend & backend, const char * kind) {
    return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: backend %s is not a %s backend",
                backend.device->ggml->fn.ggml_backend_name(backend.backend), kind);
}
} // namespace

int executor::parallel(attached_backend & backend, ggml_ext_parallel_task, void *) {
    return no_service(backend, "CPU");
}

int executor::cuda_context(attached_backend & backend, ggml_ext_cuda_context &) {
    return no_service(backend, "CUDA");
}

int executor::cuda_blas(attached_backend & backend, void **) {
    return no_service(backend, "CUDA");
}

int executor::cuda_launch(const attached_backend & backend, const ggml_ext_cuda_launch_params &) {
    return no_service(backend, "CUDA");
}

int executor::may_make(const char *) const {
    return GGML_EXT_STATUS_SUCCESS;
}

void failure::reset() {
    status_.store(GGML_EXT_STATUS_SUCCESS);
    message_.clear();
}

void failure::report(const kernel & k, int status) {
    k.counters.failed.fetch_add(1, std::memory_order_relaxed);
    std::lock_guard<std::mutex> lock(mutex_);
    if (status_.load() == GGML_EXT_STATUS_SUCCESS) {
        message_ = format("kernel %s: %s", k.name.c_str(), reason_or_name(status));
        status_.store(status, std::memory_order_release);
    }
}

int32_t failure::result() const {
    const int status = status_.load(std::memory_order_acquire);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_SUCCESS;
    }
    set_last_error(message_.c_str());
    return status == GGML_EXT_STATUS_ABORTED ? GGML_COMPUTE_ABORTED : GGML_COMPUTE_FAILED;
}

own_workspace::~own_workspace() {
    if (buffer_ != nullptr) {
        g_.fn.ggml_backend_buffer_free(buffer_);
    }
    for (ggml_backend_buffer * buffer : kept_) {
        g_.fn.ggml_backend_buffer_free(buffer);
    }
}

void * own_workspace::get(size_t size) {
    if (size > size_) {
        kept_.reserve(kept_.size() + 1);
        ggml_backend_buffer * grown =
            g_.fn.ggml_backend_buft_alloc_buffer(g_.fn.ggml_backend_get_default_buffer_type(backend_), size);
        if (grown == nullptr) {
            return nullptr;
        }
        if (keeps_) {
            kept_.push_back(buffer_);
            size_of_kept_ += size_;
        } else if (buffer_ != nullptr) {
            g_.fn.ggml_backend_synchronize(backend_); // work that still uses the old one
            g_.fn.ggml_backend_buffer_free(buffer_);
        }
        keeps_  = false;
        buffer_ = grown;
        size_   = size;
    }
    return g_.fn.ggml_backend_buffer_get_base(buffer_);
}

int assign_workspace(plan::plan & p, own_workspace & own) {
    if (p.workspace_size == 0) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    const auto align = [](void * address) {
        const uintptr_t mask = plan::WORKSPACE_ALIGNMENT - 1;
        return reinterpret_cast<void *>((reinterpret_cast<uintptr_t>(address) + mask) & ~mask);
    };
    for (const auto & s : p.steps) {
        if (s->prepared.workspace_size == 0) {
            continue;
        }
        void * base = p.leaf_data(*s);
        if (base == nullptr && p.workspace_size <= PTRDIFF_MAX) {
            base = own.get(p.workspace_size + plan::WORKSPACE_ALIGNMENT);
        }
        if (base == nullptr) {
            return fail(GGML_EXT_STATUS_NO_MEMORY, "KERNEL-4: no memory for %zu bytes of workspace of kernel %s", p.workspace_size,
                        s->k->name.c_str());
        }
        s->exec.workspace = align(base);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

graph_copy::graph_copy(const ggml_cgraph * like, ggml_tensor ** nodes, int n_nodes) : graph(*like) {
    graph.nodes   = nodes;
    graph.n_nodes = n_nodes;
    graph.n_leafs = 0;
    graph.size    = 0;
    graph.uid     = 0; // other backends take a non-zero one for "the same graph as before"
}

step_timer::~step_timer() {
    if (step_ != nullptr) {
        const auto ns = static_cast<uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count());
        step_->k->counters.time_ns.fetch_add(ns, std::memory_order_relaxed);
        step_->k->counters.timed.fetch_add(1, std::memory_order_relaxed);
        step_->time_ns.fetch_add(ns, std::memory_order_relaxed);
        step_->timed.fetch_add(1, std::memory_order_relaxed);
    }
}

void count_executed(plan::step & s) {
    s.k->counters.executed.fetch_add(1, std::memory_order_relaxed);
    s.executed.fetch_add(1, std::memory_order_relaxed);
}

int run_step(plan::step & s, failure & f, bool count) {
    const kernel & k      = *s.k;
    int            status = GGML_EXT_STATUS_SUCCESS;
    const auto &   ne     = s.exec.nodes[s.exec.n_nodes - 1]->dst->ne;
    if (std::any_of(ne, ne + GGML_EXT_MAX_DIMS, [](int64_t n) { return n == 0; })) {
        if (count) {
            count_executed(s);
        }
        return status; // nothing to compute; ggml skips such nodes too
    }
    const step_timer timer(s, profiling());
    set_last_error("");
    // what the kernel throws, too, is its failure: the executor leaves no stream without an end of its order, and no capture open
    status = guarded([&]() -> int {
        if (k.desc.execute != nullptr) {
            return k.desc.execute(&s.exec, k.desc.user_data);
        }
        int result = GGML_EXT_STATUS_SUCCESS;
        for (int phase = 0; phase < s.prepared.n_phases && result == GGML_EXT_STATUS_SUCCESS; ++phase) {
            result = k.desc.run(&s.exec, phase, 0, 1, k.desc.user_data);
        }
        return result;
    });
    if (status != GGML_EXT_STATUS_SUCCESS) {
        f.report(k, status);
    } else if (count) {
        count_executed(s);
    }
    return status;
}

} // namespace ggml_ext::exec
