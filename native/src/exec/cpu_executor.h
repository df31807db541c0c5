#pragma once

#include "exec/executor.h"

namespace ggml_ext::exec {

class cpu_executor final : public executor {
public:
    cpu_executor(const abi::ggml & g, ggml_backend * backend);
    int32_t compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) override;
    size_t  workspace_size() const override { return own_.size(); }
    int     parallel(attached_backend & backend, ggml_ext_parallel_task task, void * context) override;

private:
    struct program;
    std::shared_ptr<program> build(plan::plan & p) const;

    const abi::ggml &   g_;
    own_workspace       own_;
    const ggml_cgraph * parallel_graph_ = nullptr; // set while a whole-form step runs
};

} // namespace ggml_ext::exec
