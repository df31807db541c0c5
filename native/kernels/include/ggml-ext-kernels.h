#ifndef GGML_EXT_KERNELS_H
#define GGML_EXT_KERNELS_H

#include "ggml-ext-kernels/attention.h"
#include "ggml-ext-kernels/common.h"
#include "ggml-ext-kernels/gemm_f32.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "ggml-ext-kernels/make_row.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "ggml-ext-kernels/rope.h"
#include "ggml-ext-kernels/rows.h"

#endif
