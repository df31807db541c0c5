#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/rows.h"
#include "partition.h"

struct rows_kernels {
    void (*layer_norm)(const ggml_ext_cpu_layer_norm_args & args, range rows);
    void (*softmax)(const ggml_ext_cpu_softmax_args & args, range rows);
    void (*gelu)(const float * x, float * dst, int64_t n);
};

GGML_EXT_DECLARE_KERNELS(rows_kernels, rows);
