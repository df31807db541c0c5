#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "partition.h"

struct quantize_i8_kernels {
    void (*rows)(const ggml_ext_cpu_quantize_i8_args & args, range rows, float * scratch);
};

GGML_EXT_DECLARE_KERNELS(quantize_i8_kernels, quantize_i8);
