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
    // One row of one head. The table of a normed row has the weight in it.
    void (*row)(const ggml_ext_cpu_rope_args & args, const rope_table & table, const float * x, float * dst);
};

GGML_EXT_DECLARE_KERNELS(rope_kernels, rope);
