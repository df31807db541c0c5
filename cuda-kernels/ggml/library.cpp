#include "library.h"

#include <cuda_runtime_api.h>

#include <new>

namespace cuda_ops {

int stream_of(const ggml_ext_exec_params & params, const device & d, void *& stream) {
    ggml_ext_cuda_context context{};
    context.struct_size = sizeof(context);
    const int status    = d.context(params.backend, &context);
    stream              = context.stream;
    return status;
}

int status_of(int cuda_status) {
    if (cuda_status == GGML_EXT_CUDA_OK) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    ggml_ext_set_error(ggml_ext_cuda_last_error());
    switch (cuda_status) {
        case GGML_EXT_CUDA_UNSUPPORTED:      return GGML_EXT_STATUS_UNSUPPORTED;
        case GGML_EXT_CUDA_INVALID_ARGUMENT: return GGML_EXT_STATUS_INVALID_ARGUMENT;
        default:                             return GGML_EXT_STATUS_FAILED;
    }
}

namespace {

int failed(const char * what, cudaError_t error) {
    char text[256];
    std::snprintf(text, sizeof(text), "CUDA kernels: %s: %s", what, cudaGetErrorString(error));
    ggml_ext_set_error(text);
    return GGML_EXT_STATUS_UNSUPPORTED;
}

// Finds the device, makes it the thread's current one until the end of the scope, and loads all kernels' code on it.
class on_device {
public:
    ~on_device() {
        if (before_ >= 0) {
            cudaSetDevice(before_);
        }
    }

    int open(device & d) {
        const auto ordinal = reinterpret_cast<ggml_ext_cuda_device_v1_t>(ggml_ext_get_service(d.ggml, "ggml_ext_cuda_device_v1"));
        d.context          = reinterpret_cast<ggml_ext_cuda_context_v1_t>(ggml_ext_get_service(d.ggml, "ggml_ext_cuda_context_v1"));
        d.blas             = reinterpret_cast<ggml_ext_cuda_blas_v1_t>(ggml_ext_get_service(d.ggml, "ggml_ext_cuda_blas_v1"));
        if (ordinal == nullptr || d.context == nullptr || d.blas == nullptr) {
            ggml_ext_set_error("CUDA kernels: the device is no attached CUDA device; use one whose name is CUDA0, CUDA1, ...");
            return GGML_EXT_STATUS_UNSUPPORTED;
        }
        if (const int status = ordinal(d.ggml, &d.ordinal); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        if (const cudaError_t error = cudaGetDevice(&before_); error != cudaSuccess) {
            before_ = -1;
            return failed("no CUDA device can be used", error);
        }
        if (const cudaError_t error = cudaSetDevice(d.ordinal); error != cudaSuccess) {
            return failed("cudaSetDevice", error);
        }
        int major = 0, minor = 0;
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, d.ordinal);
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, d.ordinal);
        d.capability = 10 * major + minor;
        return status_of(ggml_ext_cuda_load());
    }

private:
    int before_ = -1;
};

} // namespace

} // namespace cuda_ops

extern "C" GGML_EXT_API int ggml_ext_kernel_library_init(ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    using namespace cuda_ops;
    if (device == nullptr || add == nullptr) {
        ggml_ext_set_error("CUDA kernels: the device or the function that takes the registrations is NULL");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    try {
        cuda_ops::device d;
        on_device        current;
        d.ggml = device;
        if (const int status = current.open(d); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        registrar r(d);
        register_linear_i8(r);
        register_quantize_i8_convrot(r);
        register_rope(r);
        register_rope_apply(r);
        register_rms_norm_rope(r);
        register_convrot_fused(r);
        return r.hand_over(add, context);
    } catch (const std::bad_alloc &) {
        ggml_ext_set_error("CUDA kernels: no memory for their registrations");
        return GGML_EXT_STATUS_NO_MEMORY;
    }
}
