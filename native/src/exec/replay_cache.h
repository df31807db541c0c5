#pragma once
// Executable CUDA graphs of plans, and how an equal plan finds them (CAP-2).

#include "cuda/device.h"
#include "exec/plan_snapshot.h"

#include <list>
#include <mutex>

namespace ggml_ext::exec {

class graph_exec {
public:
    graph_exec() = default;
    graph_exec(std::shared_ptr<const cuda::device> device, cuda::CUgraphExec exec) : device_(std::move(device)), exec_(exec) {}
    graph_exec(graph_exec && other) noexcept : device_(std::move(other.device_)), exec_(std::exchange(other.exec_, nullptr)) {}
    graph_exec & operator=(graph_exec && other) noexcept {
        std::swap(device_, other.device_);
        std::swap(exec_, other.exec_);
        return *this;
    }
    ~graph_exec(); // one that still runs is freed when it is done

    explicit          operator bool() const { return exec_ != nullptr; }
    cuda::CUgraphExec get() const { return exec_; }

private:
    std::shared_ptr<const cuda::device> device_;
    cuda::CUgraphExec                   exec_ = nullptr;
};

// A plan's, with what it depends on.
struct recording {
    plan_key   key; // empty where its kernels do not let others use it
    graph_exec exec;
    size_t     workspace_size = 0;
};

using recording_ptr = std::shared_ptr<recording>;

// Of one backend: finds the recordings of its plans, and keeps those of plans that have gone. The oldest go first. Plans end on
// whatever thread.
class replay_cache {
public:
    static constexpr size_t MAX_RETIRED         = 16;
    static constexpr size_t MAX_WORKSPACE_BYTES = 256 * 1024 * 1024; // of all retired ones together

    void          add(const recording_ptr & r);
    void          retire(recording_ptr r); // the plan that had it ends
    recording_ptr find(const plan_key & key); // NULL where there is none

private:
    std::mutex                          mutex_;
    std::list<std::weak_ptr<recording>> all_; // of plans that are there, and retired
    std::list<recording_ptr>            retired_; // oldest first
    size_t                              workspace_size_ = 0;
};

} // namespace ggml_ext::exec
