#pragma once

// The order in which tiles of rows meet panels of weights.

#include "partition.h"

namespace {

constexpr int64_t STAY_BYTES = 640 << 10; // of weights, which L2 keeps

// multiply(tile, panel) of all pairs. Where the weights stay in L2, a tile's rows stay in L1 while all panels pass by, else a panel does while
// all tiles pass by.
template <typename F> void each_tile(int64_t weight_bytes, int64_t tiles, range panels, F && multiply) {
    if (weight_bytes <= STAY_BYTES) {
        for (int64_t t = 0; t < tiles; t++) {
            for (int64_t p = panels.begin; p < panels.end; p++) {
                multiply(t, p);
            }
        }
        return;
    }
    for (int64_t p = panels.begin; p < panels.end; p++) {
        for (int64_t t = 0; t < tiles; t++) {
            multiply(t, p);
        }
    }
}

} // namespace
