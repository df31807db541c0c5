#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "partition.h"

// What one instruction set provides. A packed panel is nr int32 starting values of the sums, then, for each
// group of k_group successive k (the last one padded with zeros), nr columns of k_group bytes.
struct gemm_i8_kernels {
    int     mr, nr, k_group;
    int64_t mc, kc;
    size_t  x_element_size;
    void (*pack_panel)(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel);
    void (*run)(
        const ggml_ext_cpu_gemm_i8_args & args, const char * panels, range rows, range panel_range, char * scratch);
};

GGML_EXT_DECLARE_KERNELS(gemm_i8_kernels, gemm_i8);
