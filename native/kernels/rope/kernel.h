#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/rope.h"
#include "partition.h"

// Rotations of one position, laid out so that both kinds of pairs are one formula,
// y[i] = x[i] * own[i] + x[partner(i)] * other[i] for the d_rot rotated features.
struct rope_table {
    float *own, *other;
};

struct rope_kernels {
    // Angles to their sines, in place, and cosines.
    void (*turn)(float * angles, int64_t n, float * cosines);
    // Rows of successive heads of one position. The table of normed rows has the weight in it. Where `far`, the rows behind are fetched.
    void (*rows)(
        const ggml_ext_cpu_rope_args & args, const rope_table & table, const float * x, float * dst, int64_t heads, bool far);
};

GGML_EXT_DECLARE_KERNELS(rope_kernels, rope);
