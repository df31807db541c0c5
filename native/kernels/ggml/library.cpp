#include "registrations.h"

#include <new>

namespace cpu_ops {

registrar::~registrar() {
    for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
        ggml_ext_unregister(*it);
    }
}

void registrar::op(const ggml_ext_op_desc & desc) {
    if (status_ != GGML_EXT_STATUS_SUCCESS) {
        return;
    }
    ggml_ext_registration * handle = nullptr;
    status_                        = ggml_ext_register_op(&desc, &handle);
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        all_.push_back(handle);
    } else if (status_ == GGML_EXT_STATUS_DUPLICATE) {
        status_ = GGML_EXT_STATUS_SUCCESS;
    }
}

void registrar::kernel(ggml_ext_kernel_desc desc) {
    if (status_ != GGML_EXT_STATUS_SUCCESS) {
        return;
    }
    desc.struct_size               = sizeof(desc);
    ggml_ext_registration * handle = nullptr;
    status_                        = ggml_ext_register_kernel(device_, &desc, &handle);
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        all_.push_back(handle);
    }
}

void registrar::kernel(ggml_ext_kernel_desc desc, const shared_weights & weights) {
    if (status_ != GGML_EXT_STATUS_SUCCESS) {
        return;
    }
    auto user_data = std::make_unique<shared_weights>(weights);
    desc.user_data = user_data.get();
    desc.release   = [](void * p) { delete static_cast<shared_weights *>(p); };
    kernel(desc);
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        user_data.release();
    }
}

int registrar::hand_over(ggml_ext_add_registration add, void * context) {
    for (ggml_ext_registration * handle : all_) {
        if (status_ == GGML_EXT_STATUS_SUCCESS) {
            status_ = add(handle, context);
        }
    }
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        all_.clear();
    }
    return status_;
}

} // namespace cpu_ops

extern "C" GGML_EXT_API int ggml_ext_kernel_library_init(ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    if (device == nullptr || add == nullptr) {
        ggml_ext_set_error("CPU kernels: the device or the function that takes the registrations is NULL");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    try {
        using namespace cpu_ops;
        registrar            r(device);
        const shared_weights weights = std::make_shared<weight_cache>();
        register_mul_mat(r, weights);
        register_mul_mat_bias(r, weights);
        register_layer_norm(r);
        register_soft_max(r);
        register_gelu_erf(r);
        register_linear_i8(r, weights);
        register_quantize_i8_convrot(r);
        register_convrot_rows(r);
        register_rope(r);
        register_rope_apply(r);
        register_rms_norm_rope(r);
        return r.hand_over(add, context);
    } catch (const std::bad_alloc &) {
        ggml_ext_set_error("CPU kernels: no memory for their registrations");
        return GGML_EXT_STATUS_NO_MEMORY;
    }
}
