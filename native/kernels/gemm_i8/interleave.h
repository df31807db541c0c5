#pragma once

#include "simd.h"

namespace {

// Four vectors of words into four of `rows` interleaved rows: out[i*rows + r] = v[r][i].
inline void interleave_four(const four (&v)[4], int rows, float * out) {
    const four low[]  = {GGML_EXT_LANES_OF(v[0], v[1], 0, 4, 1, 5), GGML_EXT_LANES_OF(v[2], v[3], 0, 4, 1, 5)};
    const four high[] = {GGML_EXT_LANES_OF(v[0], v[1], 2, 6, 3, 7), GGML_EXT_LANES_OF(v[2], v[3], 2, 6, 3, 7)};

    *reinterpret_cast<four *>(out)            = GGML_EXT_LANES_OF(low[0], low[1], 0, 1, 4, 5);
    *reinterpret_cast<four *>(out + rows)     = GGML_EXT_LANES_OF(low[0], low[1], 2, 3, 6, 7);
    *reinterpret_cast<four *>(out + 2 * rows) = GGML_EXT_LANES_OF(high[0], high[1], 0, 1, 4, 5);
    *reinterpret_cast<four *>(out + 3 * rows) = GGML_EXT_LANES_OF(high[0], high[1], 2, 3, 6, 7);
}

// Rows are taken four at a time, and r is a multiple of four: where they are not whole fours, the last four overlap the ones before.
inline int first_of_four(int r, int rows) {
    return r + 4 <= rows ? r : rows - 4;
}

} // namespace
