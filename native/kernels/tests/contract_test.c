// CORE-1, BOUND-1: the kernel headers are C11 and need nothing else. Compiling this file is the test.
#include "ggml-ext-kernels.h"

int ggml_ext_kernels_header_is_c(void);

int ggml_ext_kernels_header_is_c(void) {
    return GGML_EXT_CPU_OK;
}
