#pragma once
// For backends of which the layer knows no more than the common interface: native ranges are queued, and the host waits for
// them before it runs a kernel.

#include "exec/executor.h"

namespace ggml_ext::exec {

class range_executor final : public executor {
public:
    range_executor(const abi::ggml & g, ggml_backend * backend) : g_(g), own_(g, backend) {}
    int32_t compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) override;
    size_t  workspace_size() const override { return own_.size(); }

private:
    const abi::ggml & g_;
    own_workspace     own_;
    failure           failure_;
};

} // namespace ggml_ext::exec
