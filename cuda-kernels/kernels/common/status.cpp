#include "status.h"

#include <cstdarg>
#include <cstdio>

namespace {

thread_local char message[512];

} // namespace

namespace ggml_ext_cuda {

int fail(int status, const char * format, ...) {
    va_list values;
    va_start(values, format);
    std::vsnprintf(message, sizeof(message), format, values);
    va_end(values);
    return status;
}

int check(cudaError_t error, const char * what) {
    switch (error) {
        case cudaSuccess:
            return GGML_EXT_CUDA_OK;
        case cudaErrorNoKernelImageForDevice:
        case cudaErrorInvalidDeviceFunction:
            return fail(GGML_EXT_CUDA_UNSUPPORTED,
                        "%s: this library holds no code for the current device (%s); build it for the device's "
                        "architecture with -DGGML_EXT_CUDA_ARCHITECTURES",
                        what, cudaGetErrorString(error));
        default:
            return fail(GGML_EXT_CUDA_FAILED, "%s: CUDA error %d, %s: %s", what, static_cast<int>(error),
                        cudaGetErrorName(error), cudaGetErrorString(error));
    }
}

} // namespace ggml_ext_cuda

const char * ggml_ext_cuda_last_error(void) {
    return message;
}

int ggml_ext_cuda_load(void) {
    for (auto load : {ggml_ext_cuda::load_rope, ggml_ext_cuda::load_quantize_i8, ggml_ext_cuda::load_rescale_i8,
                      ggml_ext_cuda::load_convrot_fused}) {
        if (const int status = load()) {
            return status;
        }
    }
    return GGML_EXT_CUDA_OK;
}
