#pragma once

// The sums of a tile of up to two vectors of columns, from what they begin with to what is written.

#include "tile_output.h"

namespace {

alignas(sizeof(vi)) constexpr int32_t NOTHING[NR] = {}; // to begin with where earlier blocks of K have begun

// What a tile multiplies: its rows of x, and groups of a panel.
struct factors {
    const char *   x; // the tile's
    const int8_t * w;
    int64_t        groups;
    const char *   next;      // what to fetch meanwhile,
    int64_t        next_step; // and how much of it with each group
};

// The sums of a tile that is narrower than NR, added to what earlier blocks of K left.
__attribute__((noinline)) void store_ragged(const output & out, const vi (*sums)[2], int rows) {
    for (int r = 0; r < rows; r++) {
        char * c = reinterpret_cast<char *>(row_of(out, r));
        for (int j = 0; j < out.columns; j++) {
            uint32_t before = 0;
            if (!out.first) {
                memcpy(&before, c + static_cast<size_t>(j) * sizeof(before), sizeof(before));
            }
            const uint32_t now = before + static_cast<uint32_t>(sums[r][j / LANES][j % LANES]);
            memcpy(c + static_cast<size_t>(j) * sizeof(now), &now, sizeof(now));
        }
    }
}

// The compiler may not decide, for the code behind, to keep the sums in memory through the loop before.
template <int MR> inline __attribute__((always_inline)) void pin(vi (&sums)[MR][2]) {
#if defined(__x86_64__) && !defined(GGML_EXT_ISA_SCALAR)
#    pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        __asm__("" : "+v"(sums[r][0]), "+v"(sums[r][1]));
    }
#else
    (void) sums;
#endif
}

// The sums of all U into the first. Those of unsigned x leave int32 until their starting value is added.
template <int U, int MR> inline __attribute__((always_inline)) void join_sums(vi (&sums)[U][MR][2]) {
    for (int u = 1; u < U; u++) {
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            sums[0][r][0] = wrapping_add(sums[0][r][0], sums[u][r][0]);
            sums[0][r][1] = wrapping_add(sums[0][r][1], sums[u][r][1]);
        }
    }
}

// What earlier blocks of K left of a whole tile.
template <int MR> inline __attribute__((always_inline)) void add_stored(const output & out, vi (&sums)[MR][2]) {
#pragma GCC                                                  unroll 16
    for (int r = 0; r < MR; r++) {
        const int32_t * before = reinterpret_cast<const int32_t *>(row_of(out, r));
        sums[r][0]             = wrapping_add(sums[r][0], load(before));
        sums[r][1]             = wrapping_add(sums[r][1], load(before + LANES));
    }
}

// What a tile's sums begin with, the sums of earlier blocks of K included where the tile is whole.
template <int MR> inline __attribute__((always_inline)) void begin_sums(const output & out, vi (&sums)[MR][2]) {
#pragma GCC                                                  unroll 16
    for (int r = 0; r < MR; r++) {
        sums[r][0] = load(out.start + r * out.start_step);
        sums[r][1] = load(out.start + r * out.start_step + LANES);
    }
    if (!out.first && out.columns == NR) {
        add_stored(out, sums);
    }
}

// Finished sums are scaled before they are written: what is written first and read again at once waits for the cache line.
template <int MR> inline __attribute__((always_inline)) void end_sums(const output & out, vi (&sums)[MR][2]) {
    pin(sums);
    if (out.columns == NR) {
        if (!out.last) {
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                float * c = row_of(out, r);
                store(c, from_bits(sums[r][0]));
                store(c + LANES, from_bits(sums[r][1]));
            }
            return;
        }
        finish_whole(out, sums);
        return;
    }
    vi spilled[MR][2];
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        spilled[r][0] = sums[r][0];
        spilled[r][1] = sums[r][1];
    }
    store_ragged(out, spilled, MR);
    if (out.last) {
        finish(out, MR, out.dst, out.stride);
    }
}

} // namespace
