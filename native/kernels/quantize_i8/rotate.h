#pragma once

// The fast transform: y = H4 x for four values is y[i] = (x[0] + x[1] + x[2] + x[3]) / 2 - x[3 - i], applied to
// each base-4 digit of the index in turn, the highest first. The four values always lie in four vectors.

#include "columns.h"
#include "prefetch.h"

namespace {

// A row is rotated in tiles and left in their order: vector c of a tile's four has the floats whose last digit is c.
constexpr int TILE = 4 * LANES;

// While n floats at x are rotated, those of the row that lie so far ahead are fetched, behind the last row too: a fetch reads nothing.
inline void fetch_ahead(const float * x, int n) {
    constexpr int64_t AHEAD = 512; // bytes
    fetch_to_read(reinterpret_cast<const char *>(x) + AHEAD, n * static_cast<int64_t>(sizeof(float)));
}

// N vectors, of which those D apart differ in one digit.
template <int N, int D> inline void h4(vf * r) {
    const vf half = set1(0.5f);
#pragma GCC unroll 4
    for (int i = 0; i < N / 4; i++) {
        vf *     x  = r + i / D * 4 * D + i % D;
        const vf s  = (x[0] + x[D]) + (x[2 * D] + x[3 * D]);
        const vf y0 = fma(s, half, -x[3 * D]), y1 = fma(s, half, -x[2 * D]);
        x[3 * D] = fma(s, half, -x[0]);
        x[2 * D] = fma(s, half, -x[D]);
        x[0]     = y0;
        x[D]     = y1;
    }
}

template <int N> inline void load_vectors(const float * x, int distance, vf * r) {
#pragma GCC                  unroll 16
    for (int i = 0; i < N; i++) {
        r[i] = load(x + i * distance);
    }
}

template <int N> inline void store_vectors(const vf * r, float * y, int distance) {
#pragma GCC                  unroll 16
    for (int i = 0; i < N; i++) {
        store(y + i * distance, r[i]);
    }
}

// Digit 3 of 256 floats.
inline void rotate_digit3(const float * x, float * y) {
    for (int i = 0; i < 64; i += LANES) {
        vf r[4];
        load_vectors<4>(x + i, 64, r);
        h4<4, 1>(r);
        store_vectors<4>(r, y + i, 64);
    }
}

// Digits 2 and 1 of 64 floats, more than a tile.
inline void rotate_digits21(const float * x, float * y) {
    constexpr int N = 64 / LANES;
    vf            r[N];
    load_vectors<N>(x, LANES, r);
    h4<N, N / 4>(r);
#pragma GCC unroll 4
    for (int i = 0; i < N; i += 4) {
        deal_fours(r[i], r[i + 1], r[i + 2], r[i + 3]);
    }
    h4<N, 1>(r);
    store_vectors<N>(r, y, LANES);
}

// A tile of DIGITS digits to rotate, but digit 0; DIGITS = 0: all but that are rotated. FETCH: this pass is the first that reads x.
template <int DIGITS, bool FETCH> inline void rotate_high(const float * x, vf * r) {
    if (FETCH) {
        fetch_ahead(x, TILE);
    }
    load_vectors<4>(x, LANES, r);
    if (DIGITS == 3) {
        h4<4, 1>(r);
    }
    if (DIGITS >= 2) {
        deal_fours(r[0], r[1], r[2], r[3]);
        h4<4, 1>(r);
    }
}

// Digit 0 of a tile; the largest magnitudes, as bits, into most.
inline __attribute__((always_inline)) void rotate_digit0(vf * r, float * y, vi & most) {
    vf even[2], odd[2];
    interleave_fours(r[0], r[2], even[0], even[1]);
    interleave_fours(r[1], r[3], odd[0], odd[1]);
    interleave_fours(even[0], odd[0], r[0], r[1]);
    interleave_fours(even[1], odd[1], r[2], r[3]);
    h4<4, 1>(r);
    store_vectors<4>(r, y, LANES);
    most = max_magnitude(most, r);
}

// other(i) is called beside the tile at i. Chains of operations are long where a tile has two digits and more: the high ones
// of the next tile go between.
template <int DIGITS, bool FETCH, typename F> inline void rotate_tiles(const float * x, float * y, int64_t n, vi & most, const F & other) {
    vf      r[4], next[4];
    int64_t i = 0;
    if (DIGITS >= 2) {
        rotate_high<DIGITS, FETCH>(x, next);
        for (; i + TILE < n; i += TILE) {
            memcpy(r, next, sizeof(r));
            rotate_high<DIGITS, FETCH>(x + i + TILE, next);
            rotate_digit0(r, y + i, most);
            other(i);
        }
        rotate_digit0(next, y + i, most);
        other(i);
        return;
    }
    for (; i < n; i += TILE) {
        rotate_high<DIGITS, FETCH>(x + i, r);
        rotate_digit0(r, y + i, most);
        other(i);
    }
}

// n floats, whole groups and tiles, that stay in the L1 cache from pass to pass.
template <int GROUP, typename F> inline void rotate_floats(const float * x, float * y, int64_t n, vi & most, const F & other) {
    if (GROUP == 256) {
        for (int64_t i = 0; i < n; i += 256) {
            fetch_ahead(x + i, 256);
            rotate_digit3(x + i, y + i);
        }
        x = y;
    }
    if (GROUP >= 64 && TILE < 64) {
        for (int64_t i = 0; i < n; i += 64) {
            if (GROUP == 64) {
                fetch_ahead(x + i, 64);
            }
            rotate_digits21(x + i, y + i);
        }
        x = y;
    }
    constexpr int DIGITS = GROUP == 4 ? 1 : GROUP == 16 ? 2
                                        : TILE < 64     ? 0
                                                        : 3;
    rotate_tiles<DIGITS, (GROUP < (TILE < 64 ? 64 : 256))>(x, y, n, most, other);
}

// y has room for whole tiles. The largest lane of the result is the largest magnitude's bits (a NaN's are the largest of all).
// other(i) is called beside each whole tile.
template <int GROUP, typename F> inline vi rotate_row(const float * x, float * y, int64_t k, const F & other) {
    constexpr int BLOCK = 2048;
    vi            most  = {};
    const int64_t whole = k / TILE * TILE;
    for (int64_t i = 0; i < whole; i += BLOCK) {
        rotate_floats<GROUP>(x + i, y + i, min64(BLOCK, whole - i), most, [&](int64_t j) { other(i + j); });
    }
    if (whole < k) {
        memset(y + whole, 0, TILE * sizeof(float));
        memcpy(y + whole, x + whole, static_cast<size_t>(k - whole) * sizeof(float));
        rotate_floats<GROUP>(y + whole, y + whole, TILE, most, [](int64_t) {});
    }
    return most;
}

} // namespace
