#pragma once
// Runs a plan on one backend: native ranges through the backend's own graph_compute, extension steps by their kernels.

#include "interpose/device.h"
#include "plan/plan.h"

#include <chrono>
#include <vector>

namespace ggml_ext::exec {

class executor {
public:
    virtual ~executor() = default;

    // Computes the plan's nodes of `graph`; addresses in the plan are fresh. Returns an enum ggml_status, and the reason of a failure
    // as the thread's last error.
    virtual int32_t compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) = 0;

    // bytes of scratch memory that are not in ggml's allocator
    virtual size_t workspace_size() const = 0;

    // services ggml_ext_cpu_parallel_v1, ggml_ext_cuda_context_v1, ggml_ext_cuda_blas_v1; a backend that has none refuses
    virtual int parallel(attached_backend & backend, ggml_ext_parallel_task task, void * context);
    virtual int cuda_context(attached_backend & backend, ggml_ext_cuda_context & out);
    virtual int cuda_blas(attached_backend & backend, void ** handle);

    // Inside execute: launches a module's kernel. A backend that is not CUDA's refuses.
    virtual int cuda_launch(const attached_backend & backend, const ggml_ext_cuda_launch_params & params);
    // Inside execute: a status, UNSUPPORTED where `what` cannot be made since the backend's work is captured.
    virtual int may_make(const char * what) const;
};

// a status
int make_executor(const attached_device & device, ggml_backend * backend, std::unique_ptr<executor> & out);

// The first failure of one compute; kernels may report from any thread.
class failure {
public:
    void reset();
    bool any() const { return status_.load(std::memory_order_acquire) != GGML_EXT_STATUS_SUCCESS; }
    // takes the message from the calling thread's last error
    void report(const kernel & k, int status);
    // enum ggml_status; sets the calling thread's last error
    int32_t result() const;

private:
    std::atomic<int> status_{GGML_EXT_STATUS_SUCCESS};
    std::mutex       mutex_;
    std::string      message_;
};

// Scratch memory of a backend for steps whose request is not in ggml's allocator; only grows.
class own_workspace {
public:
    own_workspace(const abi::ggml & g, ggml_backend * backend) : g_(g), backend_(backend) {}
    ~own_workspace();
    // NULL where the backend has not that much memory
    void * get(size_t size);
    size_t size() const { return size_; }
    // with what is kept
    size_t size_of_all() const { return size_ + size_of_kept_; }
    // What it gives now stays where it is until the backend ends: somebody has noted the address.
    void keep() { keeps_ = true; }

private:
    const abi::ggml &                  g_;
    ggml_backend *                     backend_;
    ggml_backend_buffer *              buffer_ = nullptr;
    size_t                             size_   = 0;
    bool                               keeps_  = false; // the buffer
    std::vector<ggml_backend_buffer *> kept_;
    size_t                             size_of_kept_ = 0;
};

// Gives each step its scratch memory; a status, and a message where there is none.
int assign_workspace(plan::plan & p, own_workspace & own);

// An opaque copy of `graph` that holds other nodes. Use counts and hash set stay, so native fusion works as before.
struct alignas(16) graph_copy {
    ggml_cgraph graph;
    graph_copy(const ggml_cgraph * like, ggml_tensor ** nodes, int n_nodes);
};

bool profiling();
void set_profiling(bool enabled);

// the execution that this thread is inside of (services are valid there only), NULL: none
const attached_backend * current_backend();

class current_backend_scope {
public:
    explicit current_backend_scope(const attached_backend * backend);
    ~current_backend_scope();
    current_backend_scope(const current_backend_scope &)             = delete;
    current_backend_scope & operator=(const current_backend_scope &) = delete;

private:
    const attached_backend * before_;
};

// Adds what passes until its end to a step's and its kernel's time; nothing where `timed` is false.
class step_timer {
public:
    step_timer(plan::step & s, bool timed) : step_(timed ? &s : nullptr) {
        if (timed) {
            start_ = std::chrono::steady_clock::now();
        }
    }
    ~step_timer();
    step_timer(const step_timer &)             = delete;
    step_timer & operator=(const step_timer &) = delete;

private:
    plan::step *                          step_;
    std::chrono::steady_clock::time_point start_;
};

void count_executed(plan::step & s);

// Runs one step on the calling thread (both forms) and counts it where `count` says so. Returns a status; failures are reported to `f`.
int run_step(plan::step & s, failure & f, bool count = true);

} // namespace ggml_ext::exec
