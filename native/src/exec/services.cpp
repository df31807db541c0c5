#include "exec/services.h"

#include "exec/executor.h"
#include "support/status.h"

#include <cstring>

namespace ggml_ext::exec {

namespace {

int cpu_parallel(ggml_backend * backend, ggml_ext_parallel_task task, void * context) {
    return guarded([&]() -> int {
        const auto attached = runtime::get().find(backend);
        if (attached == nullptr || task == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "SERV-2: %s", attached == nullptr ? "the backend is not attached" : "task is NULL");
        }
        return attached->executor->parallel(*attached, task, context);
    });
}

int cuda_context(ggml_backend * backend, ggml_ext_cuda_context * out) {
    return guarded([&]() -> int {
        const auto attached = runtime::get().find(backend);
        if (attached == nullptr || out == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "SERV-2: %s", attached == nullptr ? "the backend is not attached" : "out is NULL");
        }
        return attached->executor->cuda_context(*attached, *out);
    });
}

int cuda_blas(ggml_backend * backend, void ** handle) {
    return guarded([&]() -> int {
        const auto attached = runtime::get().find(backend);
        if (attached == nullptr || handle == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "SERV-2: %s", attached == nullptr ? "the backend is not attached" : "handle is NULL");
        }
        return attached->executor->cuda_blas(*attached, handle);
    });
}

int cuda_device(ggml_backend_device * device, int32_t * ordinal) {
    return guarded([&]() -> int {
        const attached_device * attached = runtime::get().find(device);
        if (attached == nullptr || attached->cuda == nullptr || ordinal == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "SERV-2: %s",
                        ordinal == nullptr ? "ordinal is NULL" : "the device is not an attached CUDA device");
        }
        *ordinal = attached->cuda->ordinal;
        return GGML_EXT_STATUS_SUCCESS;
    });
}

void * find_cuda_service(const char * name) {
    if (std::strcmp(name, "ggml_ext_cuda_context_v1") == 0) {
        return reinterpret_cast<void *>(cuda_context);
    }
    if (std::strcmp(name, "ggml_ext_cuda_device_v1") == 0) {
        return reinterpret_cast<void *>(cuda_device);
    }
    if (std::strcmp(name, "ggml_ext_cuda_blas_v1") == 0) {
        return reinterpret_cast<void *>(cuda_blas);
    }
    return nullptr;
}

// KERNEL-6: reference mode is a setting inside ggml's CPU backend that cannot be read back, so it is noted on its way in.
std::atomic<void (*)(ggml_backend *, bool)> native_set_use_ref{nullptr};

void set_use_ref(ggml_backend * backend, bool use_ref) {
    if (const auto attached = runtime::get().find(backend)) {
        attached->reference.store(use_ref);
    }
    native_set_use_ref.load()(backend, use_ref);
}

} // namespace

void * find_service(const patched_registry & reg, const char * name, void * native) {
    if (cuda::is_cuda(runtime::get().ggml(), reg.reg)) {
        return find_cuda_service(name);
    }
    const attached_device * cpu = runtime::get().find_cpu();
    if (cpu == nullptr || cpu->reg != reg.reg) {
        return nullptr;
    }
    if (std::strcmp(name, "ggml_ext_cpu_parallel_v1") == 0) {
        return reinterpret_cast<void *>(cpu_parallel);
    }
    if (std::strcmp(name, "ggml_backend_cpu_set_use_ref") == 0 && native != nullptr) {
        native_set_use_ref.store(reinterpret_cast<void (*)(ggml_backend *, bool)>(native));
        return reinterpret_cast<void *>(set_use_ref);
    }
    return nullptr;
}

} // namespace ggml_ext::exec
