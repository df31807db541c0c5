#pragma once
// A device whose tables are patched, and the backends made from it.

#include "cuda/device.h"
#include "registry/registry.h"

#include <memory>

namespace ggml_ext {

namespace plan {
class op_table;
class backend_plans;
} // namespace plan
namespace exec {
class executor;
}

using supports_op_fn    = bool (*)(ggml_backend_device *, const ggml_tensor *);
using init_backend_fn   = ggml_backend * (*) (ggml_backend_device *, const char *);
using graph_compute_fn  = int32_t (*)(ggml_backend *, ggml_cgraph *);
using graph_optimize_fn = void (*)(ggml_backend *, ggml_cgraph *);
using backend_free_fn   = void (*)(ggml_backend *);
using proc_address_fn   = void * (*) (struct ggml_backend_reg *, const char *);
using backend_event_fn  = void (*)(ggml_backend *, ggml_backend_event *);

struct attached_device {
    const abi::ggml *                   ggml   = nullptr;
    const plan::op_table *              ops    = nullptr;
    ggml_backend_device *               device = nullptr;
    struct ggml_backend_reg *           reg    = nullptr;
    bool                                is_cpu = false;
    std::shared_ptr<const cuda::device> cuda; // NULL: no CUDA device
    supports_op_fn                      native_supports_op  = nullptr;
    init_backend_fn                     native_init_backend = nullptr;
    mutable snapshot_cell               kernels;

    bool native_supports(const ggml_tensor * op) const;
};

struct attached_backend {
    attached_device *                    device                = nullptr;
    ggml_backend *                       backend               = nullptr;
    graph_compute_fn                     native_graph_compute  = nullptr;
    graph_optimize_fn                    native_graph_optimize = nullptr; // may be NULL
    backend_free_fn                      native_free           = nullptr;
    std::atomic<bool>                    reference{false}; // KERNEL-6: run no extension
    std::atomic<bool>                    computing{false}; // a plan with steps
    std::unique_ptr<plan::backend_plans> plans;
    std::unique_ptr<exec::executor>      executor;

    attached_backend();
    ~attached_backend();
};

} // namespace ggml_ext
