// C entries: operators, kernels, their registrations.

#include "exec/runtime.h"
#include "plan/select.h"
#include "registry/describe.h"
#include "registry/op_create.h"
#include "support/status.h"

using namespace ggml_ext;

int ggml_ext_register_op(const ggml_ext_op_desc * desc, ggml_ext_registration ** out) {
    return guarded([&]() -> int {
        ggml_ext_op_desc known{};
        if (const int status = read_struct(desc, known, "desc"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return runtime::get().registrations().register_op(known, out);
    });
}

const char * ggml_ext_op_name(const ggml_tensor * tensor) {
    return tensor == nullptr || !runtime::get().is_loaded() ? nullptr : op_name_of(runtime::get().ggml(), tensor);
}

int ggml_ext_op_create(ggml_context * ctx, const char * op, int32_t n_src, ggml_tensor * const * src, const void * attrs,
                       size_t attrs_size, ggml_tensor ** out) {
    return guarded([&]() -> int {
        if (const int status = runtime::get().check_loaded(); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (ctx == nullptr || op == nullptr || out == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s is NULL", ctx == nullptr ? "ctx" : op == nullptr ? "op"
                                                                                                               : "out");
        }
        const op_use registered = runtime::get().registrations().find_op(op);
        if (registered.op == nullptr) {
            return fail(GGML_EXT_STATUS_NOT_FOUND, "operator \"%.160s\" is not registered", op);
        }
        return op_create(runtime::get().ggml(), ctx, registered, n_src, src, attrs, attrs_size, out);
    });
}

int ggml_ext_register_kernel(ggml_backend_device * device, const ggml_ext_kernel_desc * desc, ggml_ext_registration ** out) {
    return ggml_ext_register_kernel_ex(device, desc, 0, out);
}

int ggml_ext_register_kernel_ex(ggml_backend_device * device, const ggml_ext_kernel_desc * desc, uint32_t flags,
                                ggml_ext_registration ** out) {
    return guarded([&]() -> int {
        ggml_ext_kernel_desc known{};
        if (const int status = read_struct(desc, known, "desc"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        return runtime::get().register_kernel(device, known, flags, out);
    });
}

int ggml_ext_unregister(ggml_ext_registration * registration) {
    return ggml_ext_unregister_all(&registration, 1);
}

int ggml_ext_unregister_all(ggml_ext_registration * const * registrations, size_t n) {
    return guarded([&]() -> int {
        if (registrations == nullptr && n > 0) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "registrations is NULL");
        }
        return runtime::get().registrations().unregister(registrations, n);
    });
}

const char * ggml_ext_registration_name(const ggml_ext_registration * registration) {
    return runtime::get().registrations().name_of(registration);
}

int ggml_ext_set_enabled(ggml_ext_registration * registration, bool enabled) {
    return guarded([&]() -> int { return runtime::get().registrations().set_enabled(registration, enabled); });
}

void ggml_ext_hold_answers(bool hold) {
    plan::held_answers::hold(hold);
}

bool ggml_ext_dev_supports_native_op(ggml_backend_device * device, const ggml_tensor * op) {
    if (device == nullptr || op == nullptr || !runtime::get().is_loaded()) {
        return false;
    }
    const attached_device * attached = runtime::get().find(device);
    return attached != nullptr ? attached->native_supports(op) : runtime::get().ggml().fn.ggml_backend_dev_supports_op(device, op);
}

void ggml_ext_weights_changed(const void * data, size_t size) {
    runtime::get().changes().add(data, size);
}

bool ggml_ext_weights_changed_since(uint64_t * version, const void * data, size_t size) {
    return version == nullptr || runtime::get().changes().since(*version, data, size);
}

int ggml_ext_get_kernel_stats(const ggml_ext_registration * registration, ggml_ext_kernel_stats * stats) {
    return guarded([&]() -> int {
        const kernel_ptr k = runtime::get().registrations().find_kernel(registration);
        if (k == nullptr) {
            return fail(GGML_EXT_STATUS_NOT_FOUND, "registration %p is no registered kernel", static_cast<const void *>(registration));
        }
        const kernel_counters & c = k->counters;
        return fill_struct(stats,
                           {0, c.supported.load(), c.unsupported.load(), c.planned.load(), c.executed.load(), c.failed.load(),
                            c.refused.load(), c.time_ns.load(), c.timed.load()},
                           "stats");
    });
}
