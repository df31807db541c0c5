#pragma once
// A CUDA device of ggml as the driver knows it.

#include "abi/ggml.h"
#include "cuda/driver.h"

namespace ggml_ext::cuda {

struct device {
    std::shared_ptr<const driver> cu;
    CUdevice                      ordinal = 0; // physical: among what CUDA_VISIBLE_DEVICES leaves
    int                           major = 0, minor = 0; // compute capability
    CUcontext                     context      = nullptr; // the primary one, which the CUDA runtime uses too
    bool                          whole_plans  = false;   // whole plans may become CUDA graphs (CAP-1, CAP-3)
    bool                          fusion       = true;    // not switched off by GGML_CUDA_DISABLE_FUSION
    bool                          force_cublas = false;   // GGML_CUDA_FORCE_CUBLAS

    device()                           = default;
    device(const device &)             = delete;
    device & operator=(const device &) = delete;
    ~device();

    // for this thread; what is asked of the driver from now on is about this device
    int make_current() const;
};

// Driver calls until its end are about that device; afterwards the thread's device is the one that it was.
class device_scope {
public:
    explicit device_scope(const device & d);
    ~device_scope();
    device_scope(const device_scope &)             = delete;
    device_scope & operator=(const device_scope &) = delete;

    int status() const { return status_; }

private:
    const driver & cu_;
    int            status_;
};

bool is_cuda(const abi::ggml & g, struct ggml_backend_reg * reg);

// Finds the physical device and proves that ggml's library has code for it (COMPAT-3). `code` is any function of that library.
// NULL where that is not so; the reason is the thread's last error.
std::shared_ptr<const device> open_device(const abi::ggml & g, ggml_backend_device * ggml_device, const void * code);

} // namespace ggml_ext::cuda
