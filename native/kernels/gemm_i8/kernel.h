#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "partition.h"

// Panels of nr columns, `stride` bytes apart.
struct packed_panels {
    const char * data;
    size_t       stride;

    const char * at(int64_t p) const { return data + static_cast<size_t>(p) * stride; }
};

// What one instruction set provides. A packed panel is nr columns of K bytes, padded to whole groups, in the order that the kernel
// reads; gemm_i8_avx2_bytes has more in it (kernel_avx2.cpp, safe_weights.h).
struct gemm_i8_kernels {
    int mr, nr;
    size_t (*panel_bytes)(int64_t K);
    size_t (*scratch_size)(int64_t M, int64_t K);
    void (*pack_panel)(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel);
    void (*run)(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch);
};

// Up to most_rows rows of x by weights that are not packed: some columns of the result.
struct unpacked_i8_kernels {
    int64_t most_rows;
    size_t (*scratch_size)(int64_t M, int64_t K);
    void (*run)(const ggml_ext_cpu_gemm_i8_args & args, range columns, char * scratch);
};

GGML_EXT_DECLARE_KERNELS(gemm_i8_kernels, gemm_i8);
#if defined(__x86_64__)
extern const gemm_i8_kernels     gemm_i8_amx, gemm_i8_avx2_bytes;
extern const unpacked_i8_kernels unpacked_i8_avx2;
#endif
