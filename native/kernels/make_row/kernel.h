#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/make_row.h"

struct make_row_kernels {
    void (*make)(const ggml_ext_cpu_row & row, int64_t n, float * dst);
};

GGML_EXT_DECLARE_KERNELS(make_row_kernels, make_row);
