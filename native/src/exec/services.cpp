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
