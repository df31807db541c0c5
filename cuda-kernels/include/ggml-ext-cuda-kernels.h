#ifndef GGML_EXT_CUDA_KERNELS_H
#define GGML_EXT_CUDA_KERNELS_H

// The CUDA kernels of ggml-ext, without a framework: plain C, no CUDA header needed.

#include "ggml-ext-cuda-kernels/common.h"
#include "ggml-ext-cuda-kernels/convrot_fused.h"
#include "ggml-ext-cuda-kernels/quantize_i8.h"
#include "ggml-ext-cuda-kernels/rescale_i8.h"
#include "ggml-ext-cuda-kernels/rope.h"

#endif
