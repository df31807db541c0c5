// Runs every family's tests on the current device. Without one the run is a skip (77), never a pass.

#define DOCTEST_CONFIG_IMPLEMENT
#include "ggml-ext-cuda-kernels.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cstdio>

int main(int argc, char ** argv) {
    int               count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0) {
        std::printf("skipped: no CUDA device (%s)\n", cudaGetErrorString(error));
        return 77;
    }
    if (ggml_ext_cuda_load() == GGML_EXT_CUDA_UNSUPPORTED) {
        std::printf("skipped: %s\n", ggml_ext_cuda_last_error());
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
