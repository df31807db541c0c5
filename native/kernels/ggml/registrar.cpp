#include "registrar.h"

namespace cpu_ops {

device_registrar::~device_registrar() {
    for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
        ggml_ext_unregister(*it);
    }
}

void device_registrar::op(const char * name, size_t attrs_size, ggml_ext_infer infer) {
    if (status_ != GGML_EXT_STATUS_SUCCESS) {
        return;
    }
    all_.reserve(all_.size() + 1); // to be withdrawn, a registration must be kept: there must be room
    ggml_ext_op_desc desc{};
    desc.struct_size               = sizeof(desc);
    desc.name                      = name;
    desc.attrs_size                = attrs_size;
    desc.infer                     = infer;
    ggml_ext_registration * handle = nullptr;
    status_                        = ggml_ext_register_op(&desc, &handle);
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        all_.push_back(handle);
    } else if (status_ == GGML_EXT_STATUS_DUPLICATE) {
        status_ = GGML_EXT_STATUS_SUCCESS;
    }
}

void device_registrar::register_kernel(ggml_ext_kernel_desc desc, uint32_t flags) {
    if (status_ != GGML_EXT_STATUS_SUCCESS) {
        return;
    }
    all_.reserve(all_.size() + 1); // to be withdrawn, a registration must be kept: there must be room
    desc.struct_size               = sizeof(desc);
    ggml_ext_registration * handle = nullptr;
    status_                        = ggml_ext_register_kernel_ex(device_, &desc, flags, &handle);
    if (status_ == GGML_EXT_STATUS_SUCCESS) {
        all_.push_back(handle);
    }
}

int device_registrar::hand_over(ggml_ext_add_registration add, void * context) {
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
