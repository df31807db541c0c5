#pragma once

// Registering operators and kernels with a device, for the CPU's and the CUDA library.

#include "ggml-ext.h"

#include <memory>
#include <vector>

namespace cpu_ops {

// Registrations of one device, withdrawn again unless they are handed over. After a failure the others do nothing.
class device_registrar {
public:
    explicit device_registrar(ggml_backend_device * device) : device_(device) {}
    ~device_registrar();
    device_registrar(const device_registrar &)             = delete;
    device_registrar & operator=(const device_registrar &) = delete;

    void op(const char * name, size_t attrs_size, ggml_ext_infer infer); // one that is there already is right

    int hand_over(ggml_ext_add_registration add, void * context);

protected:
    void register_kernel(ggml_ext_kernel_desc desc, uint32_t flags);

    // The kernel's user_data points to a copy of the value, which lives as long as the registration.
    template <typename T> void register_kernel(ggml_ext_kernel_desc desc, uint32_t flags, const T & value) {
        auto user_data    = std::make_unique<T>(value);
        desc.user_data    = user_data.get();
        desc.release      = [](void * p) { delete static_cast<T *>(p); };
        const auto before = all_.size();
        register_kernel(desc, flags);
        if (all_.size() > before) {
            user_data.release();
        }
    }

private:
    ggml_backend_device *                device_;
    std::vector<ggml_ext_registration *> all_;
    int                                  status_ = GGML_EXT_STATUS_SUCCESS;
};

} // namespace cpu_ops
