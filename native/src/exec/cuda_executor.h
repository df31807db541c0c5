#pragma once
// Extension steps on a CUDA backend: on a stream beside the backend's own, natively computed ranges between them. Where all allow
// it, the whole plan becomes one CUDA graph; docs/cuda.md draws the states.

#include "exec/cuda_blas.h"
#include "exec/cuda_launch.h"
#include "exec/executor.h"
#include "exec/replay_cache.h"
#include "exec/side_stream.h"

namespace ggml_ext::exec {

class cuda_executor final : public executor {
public:
    cuda_executor(const attached_device & device, ggml_backend * backend);
    ~cuda_executor() override;

    int     open(); // once; a status
    int32_t compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) override;
    size_t  workspace_size() const override { return own_.size_of_all(); }
    int     cuda_context(attached_backend & backend, ggml_ext_cuda_context & out) override;
    int     cuda_blas(attached_backend & backend, void ** handle) override;
    int     cuda_launch(const attached_backend & backend, const ggml_ext_cuda_launch_params & params) override;
    int     may_make(const char * what) const override;

private:
    struct plan_state;
    struct call;
    enum class fragments {
        stamped,
        plain
    };

    plan_state & state_of(plan::plan & p);
    bool         may_become_graph(const plan::plan & p) const;
    static bool  needs_own_workspace(const plan::plan & p);
    int32_t      compute_step_by_step(const call & c, fragments how);
    int32_t      compute_into(const call & c);
    int32_t      record(const call & c);
    int32_t      replay(const call & c);
    int32_t      run(const call & c, fragments how, bool is_recording);
    int32_t      run_native(const call & c, size_t fragment, fragments how);

    const abi::ggml &                   g_;
    std::shared_ptr<const cuda::device> device_;
    ggml_backend *                      backend_;
    side_stream                         stream_;
    own_workspace                       own_;
    cuda_blas_handle                    blas_;
    failure                             failure_;
    cuda_launcher                       launcher_; // before the recordings, which may hold its modules' code
    std::shared_ptr<replay_cache>       recordings_ = std::make_shared<replay_cache>();
    std::deque<ggml_tensor>             stamps_; // one for each fragment of the plan with most; they are ggml's keys, so they stay
    int32_t                             stamp_value_ = 0;
};

} // namespace ggml_ext::exec
