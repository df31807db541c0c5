#pragma once

// A panel of weights in the order that products of groups read: GROUP successive k of each of its columns, then the next ones.

#include "tile_size.h"

namespace {

template <int GROUP> int64_t groups_of(int64_t k) {
    return (k + GROUP - 1) / GROUP;
}

template <int GROUP> size_t grouped_bytes(int64_t k) {
    return static_cast<size_t>(groups_of<GROUP>(k)) * NR * GROUP;
}

// Of each weight w + OFFSET. What no weight fills keeps what it has.
template <int GROUP, int OFFSET> void pack_groups(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    for (int64_t j = 0; j < columns; j++) {
        const int8_t * row = w + static_cast<size_t>(j) * w_stride;
        for (int64_t i = 0; i < k; i++) {
            panel[(i / GROUP * NR + j) * GROUP + i % GROUP] = static_cast<char>(row[i] + OFFSET);
        }
    }
}

} // namespace
