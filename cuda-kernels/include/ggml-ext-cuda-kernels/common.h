#ifndef GGML_EXT_CUDA_KERNELS_COMMON_H
#define GGML_EXT_CUDA_KERNELS_COMMON_H

// What all CUDA kernel families share. Every entry that takes a stream follows the same rules:
//   - pointers to tensors and workspaces are device pointers; argument structs are read before the call returns;
//   - `stream` is a cudaStream_t of the calling thread's current device (NULL: the default stream);
//   - it launches and returns: no allocation, no synchronisation, no other stream, so it may be captured into a
//     CUDA graph (after ggml_ext_cuda_load where a strict capture mode is used);
//   - it returns GGML_EXT_CUDA_OK or a status, and has launched nothing where it returns a status other than
//     GGML_EXT_CUDA_FAILED;
//   - outputs must not overlap inputs or the workspace unless the entry says so.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_ext_cuda_status {
    GGML_EXT_CUDA_OK               = 0,
    GGML_EXT_CUDA_INVALID_ARGUMENT = 1, // a null pointer, an extent below 1, a stride or alignment that cannot be
    GGML_EXT_CUDA_SMALL_WORKSPACE  = 2, // the workspace is smaller than its size function says
    GGML_EXT_CUDA_UNSUPPORTED      = 3, // valid, but outside what the kernel computes, or no code for this device
    GGML_EXT_CUDA_FAILED           = 4, // a CUDA call failed
};

// What the last entry that failed on this thread was given and what it expected; "" before any. Valid until the
// next failure on this thread.
const char * ggml_ext_cuda_last_error(void);

// Loads the code of every kernel on the current device, so that no later call does it inside a capture.
// GGML_EXT_CUDA_UNSUPPORTED where the library holds no code that the device runs.
int ggml_ext_cuda_load(void);

#ifdef __cplusplus
}
#endif

#endif
