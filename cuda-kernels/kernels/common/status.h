#pragma once

// How entries fail and launch.

#include "ggml-ext-cuda-kernels/common.h"

#include <cuda_runtime.h>

namespace ggml_ext_cuda {

// Keeps the message for this thread and returns the status.
int fail(int status, const char * format, ...) __attribute__((format(printf, 2, 3)));

// OK for cudaSuccess; else the status and message of an error of `what`.
int check(cudaError_t error, const char * what);

constexpr int64_t MAX_BLOCKS = 0x7FFFFFFF;

inline bool aligned(const void * pointer, size_t bytes) {
    return reinterpret_cast<uintptr_t>(pointer) % bytes == 0;
}

struct grid {
    int64_t x, y; // y up to 65535

    grid(int64_t x_, int64_t y_ = 1) : x(x_), y(y_) {}
};

// Whether kernels may begin early on the current device. There is machine code only, no PTX (CMakeLists.txt), so what runs on a device
// of compute capability 9 or later was compiled for one and waits by itself (dependent.cuh).
inline cudaError_t may_begin_early(bool & out) {
    int         device = 0, major = 0;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess) {
        error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    }
    out = major >= 9;
    return error;
}

// The kernel calls wait_for_work_before() first.
template <typename... P, typename... A>
int launch(const char * what, void (*kernel)(P...), grid blocks, int threads, size_t shared, void * stream, A... args) {
    if (blocks.x > MAX_BLOCKS || blocks.y > 65535) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "%s: %lld x %lld blocks are more than a grid holds (%lld x 65535)", what,
                    static_cast<long long>(blocks.x), static_cast<long long>(blocks.y),
                    static_cast<long long>(MAX_BLOCKS));
    }
    cudaLaunchConfig_t config = {};
    config.gridDim            = dim3(static_cast<unsigned>(blocks.x), static_cast<unsigned>(blocks.y));
    config.blockDim           = dim3(static_cast<unsigned>(threads));
    config.dynamicSmemBytes   = shared;
    config.stream             = static_cast<cudaStream_t>(stream);
    bool early                = false;
    if (const int status = check(may_begin_early(early), what)) {
        return status;
    }
    cudaLaunchAttribute attribute                        = {};
    attribute.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs                                         = &attribute;
    config.numAttrs                                      = early ? 1 : 0;
    return check(cudaLaunchKernelEx(&config, kernel, args...), what);
}

// Loads one kernel's code on the current device.
template <typename... P> int load(const char * what, void (*kernel)(P...)) {
    cudaFuncAttributes attributes;
    return check(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel)), what);
}

int load_rope();
int load_quantize_i8();
int load_rescale_i8();
int load_convrot_fused();

} // namespace ggml_ext_cuda
