#pragma once

// Rows of x in the order that a tile reads: a group, SIZE successive k of one row, is a 32-bit word.

#include "interleave.h"

namespace {

// Unsigned: x + OFFSET.
struct byte_groups {
    typedef uint8_t          element;
    static constexpr int     SIZE   = 4;
    static constexpr int32_t OFFSET = 128;
};

struct pair_groups {
    typedef int16_t          element;
    static constexpr int     SIZE   = 2;
    static constexpr int32_t OFFSET = 0;
};

// Four groups of x.
template <typename G> four load_groups(const int8_t * p) {
    typedef int8_t              bytes __attribute__((vector_size(4 * G::SIZE)));
    typedef typename G::element elements __attribute__((vector_size(16)));
    bytes                       x;
    memcpy(&x, p, sizeof(x));
    if constexpr (sizeof(typename G::element) == 1) {
        x ^= static_cast<int8_t>(G::OFFSET);
    }
    const elements widened = __builtin_convertvector(x, elements);
    four           groups;
    memcpy(&groups, &widened, sizeof(groups));
    return groups;
}

// The groups of k from `begin` on of one row, at words g*width of out.
template <typename G> void pack_row(const int8_t * x, int width, int64_t begin, int64_t depth, typename G::element * out) {
    int64_t i = begin;
    for (; i + G::SIZE <= depth; i += G::SIZE) {
        typename G::element group[G::SIZE];
        for (int j = 0; j < G::SIZE; j++) {
            group[j] = static_cast<typename G::element>(x[i + j] + G::OFFSET);
        }
        memcpy(out + i * width, group, sizeof(group));
    }
    if (i < depth) {
        typename G::element group[G::SIZE] = {};
        for (int j = 0; i + j < depth; j++) {
            group[j] = static_cast<typename G::element>(x[i + j] + G::OFFSET);
        }
        memcpy(out + i * width, group, sizeof(group));
    }
}

// rows rows of x, at most width: group g of row r is at 32-bit word g*width + r.
template <typename G> void pack_rows(const int8_t * x, size_t x_stride, int rows, int width, int64_t depth, char * out) {
    constexpr int STEP     = 4 * G::SIZE;
    const int64_t by_fours = rows >= 4 ? depth / STEP * STEP : 0;
    for (int r = 0; r < rows && by_fours > 0; r += 4) {
        const int      first     = first_of_four(r, rows);
        const int8_t * four_rows = x + static_cast<size_t>(first) * x_stride;
        float *        to        = reinterpret_cast<float *>(out) + first;
        for (int64_t i = 0; i < by_fours; i += STEP) {
            const four groups[4] = {load_groups<G>(four_rows + i), load_groups<G>(four_rows + x_stride + i),
                                    load_groups<G>(four_rows + 2 * x_stride + i), load_groups<G>(four_rows + 3 * x_stride + i)};
            interleave_four(groups, width, to + i / G::SIZE * width);
        }
    }
    for (int r = 0; r < rows; r++) {
        pack_row<G>(x + static_cast<size_t>(r) * x_stride, width, by_fours, depth,
                    reinterpret_cast<typename G::element *>(out) + r * G::SIZE);
    }
}

} // namespace
