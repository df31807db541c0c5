#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "partition.h"

// What one instruction set provides. A packed panel is nr int32 starting values of the sums, then nr columns of K bytes, padded with
// zeros to a multiple of k_group, in the order that the kernel reads.
struct gemm_i8_kernels {
    int mr, nr, k_group;
    size_t (*scratch_size)(int64_t M, int64_t K);
    void (*pack_panel)(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel);
    void (*run)(
        const ggml_ext_cpu_gemm_i8_args & args, const char * panels, range rows, range panel_range, char * scratch);
};

GGML_EXT_DECLARE_KERNELS(gemm_i8_kernels, gemm_i8);
#if defined(__x86_64__)
extern const gemm_i8_kernels gemm_i8_amx;
#endif
