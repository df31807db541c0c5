// BOUND-1: the header is C11 and needs no CUDA header. Compiling this file is the test.
#include "ggml-ext-cuda-kernels.h"

int ggml_ext_cuda_header_is_c(void);

int ggml_ext_cuda_header_is_c(void) {
    return GGML_EXT_CUDA_OK;
}
