#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/gemm_f32.h"
#include "partition.h"

// What one instruction set provides. Weights are packed in panels of nr columns: panel p holds, for each
// k, the weights w[p*nr + 0 .. nr-1][k], the last panel padded with zeros.
struct gemm_f32_kernels {
    int mr, nr;
    size_t (*scratch_size)(int64_t M, int64_t K);
    void (*pack_panel)(const float * w, size_t w_stride, int64_t columns, int64_t k, float * panel);
    void (*run)(
        const ggml_ext_cpu_gemm_f32_args & args, const float * panels, range rows, range panel_range, float * scratch);
};

GGML_EXT_DECLARE_KERNELS(gemm_f32_kernels, gemm_f32);
