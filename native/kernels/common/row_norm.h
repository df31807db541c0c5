#pragma once

// LayerNorm's two sums over a row: its mean, and 1 / sqrt(variance + eps). RMSNorm is the latter around 0.

#include "row_vectors.h"

namespace {

inline vf mean_from(vf total, int64_t n) {
    return set1(sum(total) * (1.0f / static_cast<float>(n)));
}

inline vf norm_factor(const float * row, int64_t n, vf mean, float eps) {
    vf squares = {};
    each_vector(n, [&](int64_t i, int lanes) {
        const vf d = only(take(row + i, lanes) - mean, lanes);
        squares    = fma(d, d, squares);
    });
    return set1(1.0f / __builtin_sqrtf(sum(squares) * (1.0f / static_cast<float>(n)) + eps));
}

} // namespace
