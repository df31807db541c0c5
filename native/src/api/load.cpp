// C entries: status, loading, attaching.

#include "exec/executor.h"
#include "exec/runtime.h"
#include "exec/services.h"
#include "support/status.h"

using namespace ggml_ext;

namespace {

int check_pointer(const void * pointer, const char * name) {
    return pointer != nullptr ? GGML_EXT_STATUS_SUCCESS : fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", name);
}

} // namespace

const char * ggml_ext_status_name(int status) {
    switch (status) {
        case GGML_EXT_STATUS_SUCCESS:          return "SUCCESS";
        case GGML_EXT_STATUS_INVALID_ARGUMENT: return "INVALID_ARGUMENT";
        case GGML_EXT_STATUS_DUPLICATE:        return "DUPLICATE";
        case GGML_EXT_STATUS_NOT_FOUND:        return "NOT_FOUND";
        case GGML_EXT_STATUS_IN_USE:           return "IN_USE";
        case GGML_EXT_STATUS_UNSUPPORTED:      return "UNSUPPORTED";
        case GGML_EXT_STATUS_INCOMPATIBLE:     return "INCOMPATIBLE";
        case GGML_EXT_STATUS_NO_MEMORY:        return "NO_MEMORY";
        case GGML_EXT_STATUS_FAILED:           return "FAILED";
        case GGML_EXT_STATUS_ABORTED:          return "ABORTED";
        case GGML_EXT_STATUS_NOT_LOADED:       return "NOT_LOADED";
        default:                               return "UNKNOWN";
    }
}

const char * ggml_ext_last_error(void) {
    return last_error();
}

void ggml_ext_set_error(const char * message) {
    guarded([&]() -> int {
        set_last_error(message);
        return GGML_EXT_STATUS_SUCCESS;
    });
}

int32_t ggml_ext_api_version(void) {
    return GGML_EXT_API_VERSION;
}

const char * ggml_ext_version(void) {
    return "0.1.0";
}

void ggml_ext_log_set(ggml_ext_log_callback callback, void * user_data) {
    log_set(callback, user_data);
}

int ggml_ext_load(const ggml_ext_load_params * params) {
    return guarded([&]() -> int {
        ggml_ext_load_params known{};
        if (params != nullptr) {
            if (!is_struct_size(params->struct_size)) {
                return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "params->struct_size is %zu, expected sizeof(struct ggml_ext_load_params)",
                            params->struct_size);
            }
            std::memcpy(&known, params, std::min(params->struct_size, sizeof(known)));
        }
        return runtime::get().load(known);
    });
}

bool ggml_ext_is_loaded(void) {
    return runtime::get().is_loaded();
}

int ggml_ext_get_abi_info(ggml_ext_abi_info * info) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        const abi::ggml & g = runtime::get().ggml();
        return fill_struct(info,
                           {0, g.version.c_str(), sizeof(ggml_tensor), g.has_cgraph ? sizeof(ggml_cgraph) : 0, g.has_cgraph, g.note.c_str()},
                           "info");
    });
}

int ggml_ext_attach_device(ggml_backend_device * device) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (const int status = check_pointer(device, "device"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return runtime::get().attach(device);
    });
}

int ggml_ext_attach_backend(ggml_backend * backend) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (const int status = check_pointer(backend, "backend"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return runtime::get().attach(backend);
    });
}

bool ggml_ext_is_attached(const ggml_backend_device * device) {
    return runtime::get().is_attached(device);
}

int ggml_ext_detach_device(ggml_backend_device * device) {
    return guarded([&]() -> int {
        if (const int status = check_pointer(device, "device"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return runtime::get().detach(device);
    });
}

void * ggml_ext_get_service(ggml_backend_device * device, const char * name) {
    void * service = nullptr;
    guarded([&]() -> int {
        const attached_device * attached = runtime::get().find(device);
        if (attached == nullptr || name == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s", name == nullptr ? "name is NULL" : "the device is not attached");
        }
        service = exec::find_service(*runtime::get().find(attached->reg), name, nullptr);
        return service != nullptr ? GGML_EXT_STATUS_SUCCESS
                                  : fail(GGML_EXT_STATUS_NOT_FOUND, "SERV-1: device %s has no service %s",
                                         attached->ggml->fn.ggml_backend_dev_name(device), name);
    });
    return service;
}

void ggml_ext_set_profiling(bool enabled) {
    exec::set_profiling(enabled);
}
