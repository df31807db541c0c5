#pragma once

// Kernels here are launched so that they may begin while the kernel in front of them ends (status.h), on GPUs that can do so.

namespace ggml_ext_cuda {

// First of all memory that a kernel reads or writes: then all work in front of it has ended, and is seen.
__device__ inline void wait_for_work_before() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

// The next kernel may begin, as far as it can without this one's results, once all blocks have come here or ended.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

} // namespace ggml_ext_cuda
