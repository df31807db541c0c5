#include "exec/range_executor.h"

#include "exec/cpu_executor.h"
#include "exec/cuda_executor.h"
#include "support/status.h"

namespace ggml_ext::exec {

int make_executor(const attached_device & device, ggml_backend * backend, std::unique_ptr<executor> & out) {
    if (device.cuda != nullptr) {
        auto made = std::make_unique<cuda_executor>(device, backend);
        if (const int status = made->open(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        out = std::move(made);
    } else if (device.is_cpu) {
        out = std::make_unique<cpu_executor>(*device.ggml, backend);
    } else {
        out = std::make_unique<range_executor>(*device.ggml, backend);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int32_t range_executor::compute(attached_backend & backend, plan::plan & p, ggml_cgraph * graph) {
    failure_.reset();
    if (assign_workspace(p, own_) != GGML_EXT_STATUS_SUCCESS) {
        return GGML_COMPUTE_FAILED;
    }
    const current_backend_scope scope(&backend);
    const auto                  native = [&](int begin, int end) -> int32_t {
        if (begin == end) {
            return GGML_COMPUTE_SUCCESS;
        }
        graph_copy copy(graph, p.nodes.data() + begin, end - begin);
        return backend.native_graph_compute(backend.backend, &copy.graph);
    };
    int next = 0;
    for (const auto & s : p.steps) {
        if (const int32_t status = native(next, s->first); status != GGML_COMPUTE_SUCCESS) {
            return status;
        }
        g_.fn.ggml_backend_synchronize(backend.backend);
        if (run_step(*s, failure_) != GGML_EXT_STATUS_SUCCESS) {
            return failure_.result();
        }
        next = s->first + s->count;
    }
    return native(next, static_cast<int>(p.nodes.size()));
}

} // namespace ggml_ext::exec
