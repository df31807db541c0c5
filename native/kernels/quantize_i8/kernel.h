#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "partition.h"

namespace {

// Floats of one of the two rows in the scratch: whole tiles, of 64 floats at most. Half a page lies between rows that would otherwise be
// whole pages apart, where each load of one waits for the stores to the other that have the same low address bits.
inline int64_t scratch_row(int64_t k) {
    constexpr int64_t PAGE = 4096 / sizeof(float);
    const int64_t     row  = (k + 63) / 64 * 64;
    return row % PAGE == 0 ? row + PAGE / 2 : row;
}

} // namespace

struct quantize_i8_kernels {
    void (*rows)(const ggml_ext_cpu_quantize_i8_args & args, range rows, float * scratch);
};

GGML_EXT_DECLARE_KERNELS(quantize_i8_kernels, quantize_i8);
