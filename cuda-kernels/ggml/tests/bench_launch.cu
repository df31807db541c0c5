// The kernel of module_kernels.cu as nvcc links it into a program.

#include "bench_launch.h"

#include "module_kernels.cu"

int launch_swish(const float * x, float * y, float beta, long long n, cudaStream_t stream) {
    int device = 0, capability = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&capability, cudaDevAttrComputeCapabilityMajor, device);
    cudaLaunchAttribute early                        = {};
    early.id                                         = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config                        = {};
    config.gridDim                                   = dim3(static_cast<unsigned>((n + 255) / 256));
    config.blockDim                                  = dim3(256);
    config.stream                                    = stream;
    config.attrs                                     = &early;
    config.numAttrs                                  = capability >= 9 ? 1 : 0;
    return cudaLaunchKernelEx(&config, swish, x, y, beta, n);
}
