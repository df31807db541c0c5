// C entries: CUDA modules and their launch.

#include "exec/executor.h"
#include "exec/runtime.h"
#include "support/status.h"

using namespace ggml_ext;

namespace {

// where a module may be made: an attached CUDA device, outside of captures
int find_device(ggml_backend_device * device, const void * out, std::shared_ptr<const cuda::device> & found) {
    if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (device == nullptr || out == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: %s is NULL", device == nullptr ? "device" : "out");
    }
    if (!runtime::get().is_attached(device)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: device %p is not attached: call ggml_ext_attach_device first",
                    static_cast<void *>(device));
    }
    found = runtime::find(device)->cuda;
    if (found == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: device %s is no CUDA device", runtime::get().ggml().fn.ggml_backend_dev_name(device));
    }
    const attached_backend * inside = exec::current_backend();
    return inside == nullptr ? static_cast<int>(GGML_EXT_STATUS_SUCCESS) : inside->executor->may_make("AOT-1: modules are");
}

} // namespace

int ggml_ext_cuda_module_compile(ggml_backend_device * device, const ggml_ext_cuda_source * source, ggml_ext_cuda_module ** out) {
    return guarded([&]() -> int {
        std::shared_ptr<const cuda::device> found;
        if (const int status = find_device(device, out, found); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        ggml_ext_cuda_source known{};
        if (const int status = read_struct(source, known, "source"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (known.text == nullptr || *known.text == '\0') {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: source->text is %s, expected CUDA C++", known.text == nullptr ? "NULL" : "empty");
        }
        if (known.n_options < 0 || (known.n_options > 0 && known.options == nullptr)) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: source->n_options is %d, and options %s", known.n_options,
                        known.options == nullptr ? "is NULL" : "is not");
        }
        cuda::source s{known.text, known.name, {}};
        for (int32_t i = 0; i < known.n_options; ++i) {
            if (known.options[i] == nullptr) {
                return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: source->options[%d] is NULL", i);
            }
            s.options.push_back(known.options[i]);
        }
        return runtime::get().modules().compile(std::move(found), s, *out);
    });
}

int ggml_ext_cuda_module_load(ggml_backend_device * device, const void * image, size_t size, ggml_ext_cuda_module ** out) {
    return guarded([&]() -> int {
        std::shared_ptr<const cuda::device> found;
        const int                           status = find_device(device, out, found);
        return status == GGML_EXT_STATUS_SUCCESS ? runtime::get().modules().load(std::move(found), image, size, *out) : status;
    });
}

int ggml_ext_cuda_module_free(ggml_ext_cuda_module * module) {
    return guarded([&]() -> int { return runtime::get().modules().free(module); });
}

int ggml_ext_cuda_module_get_function(ggml_ext_cuda_module * module, const char * name, ggml_ext_cuda_function_info * info) {
    return guarded([&]() -> int {
        cuda::module_ptr found;
        if (const int status = runtime::get().modules().find(module, found); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (name == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: name is NULL");
        }
        const cuda::function * f = nullptr;
        if (const int status = found->code->find(name, f); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return fill_struct(info,
                           {0, static_cast<int32_t>(f->param_sizes.size()), f->param_sizes.data(), f->max_threads_per_block, f->n_registers,
                            f->static_shared_memory, f->local_memory},
                           "info");
    });
}

int ggml_ext_cuda_launch(ggml_backend * backend, const ggml_ext_cuda_launch_params * params) {
    return guarded([&]() -> int {
        ggml_ext_cuda_launch_params known{};
        if (const int status = read_struct(params, known, "params"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        const attached_backend * inside = exec::current_backend(); // without a look into the table of backends, which takes a lock
        if (inside != nullptr && inside->backend == backend) {
            return inside->executor->cuda_launch(*inside, known);
        }
        const auto attached = backend == nullptr ? nullptr : runtime::get().find(backend);
        if (attached == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: backend %p is not attached", static_cast<void *>(backend));
        }
        return attached->executor->cuda_launch(*attached, known); // refuses: this is not execute's thread
    });
}
