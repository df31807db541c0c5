#pragma once

// The fast transform: y = H4 x for four values is y[i] = (x[0] + x[1] + x[2] + x[3]) / 2 - x[3 - i], applied to
// each base-4 digit of the index in turn, the highest first. The four values always lie in four vectors.

#include "simd.h"

namespace {

// A row is rotated in tiles and left in their order: vector c of a tile's four has the floats whose last digit is c.
constexpr int TILE = 4 * LANES;

// Where float i of a row lies among the tiles.
inline int64_t place(int64_t i) {
    const int64_t in_tile = i % TILE;
    return i - in_tile + in_tile % 4 * LANES + in_tile / 4;
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

// Digits 2, of 64 floats, and 1, or digit 1 of a tile alone.
template <bool digit2> inline void rotate_digits21(const float * x, float * y) {
    constexpr int N = digit2 ? 64 / LANES : 4;
    vf            r[N];
    load_vectors<N>(x, LANES, r);
    if (digit2) {
        h4<N, N / 4>(r);
    }
#pragma GCC unroll 4
    for (int i = 0; i < N; i += 4) {
        deal_fours(r[i], r[i + 1], r[i + 2], r[i + 3]);
    }
    h4<N, 1>(r);
    store_vectors<N>(r, y, LANES);
}

inline vi magnitude(vf v) {
    return bits(v) & 0x7FFFFFFF;
}

// Digit 0 of a tile, of which digit 1 is dealt to vectors already or not; the largest magnitudes, as bits, into most.
template <bool dealt> inline void rotate_digit0(const float * x, float * y, vi & most) {
    vf r[4], even[2], odd[2];
    load_vectors<4>(x, LANES, r);
    if (!dealt) {
        deal_fours(r[0], r[1], r[2], r[3]);
    }
    interleave_fours(r[0], r[2], even[0], even[1]);
    interleave_fours(r[1], r[3], odd[0], odd[1]);
    interleave_fours(even[0], odd[0], r[0], r[1]);
    interleave_fours(even[1], odd[1], r[2], r[3]);
    h4<4, 1>(r);
    store_vectors<4>(r, y, LANES);
    most = max(most, max(max(magnitude(r[0]), magnitude(r[1])), max(magnitude(r[2]), magnitude(r[3]))));
}

// n floats, whole groups and tiles, that stay in the L1 cache from pass to pass. A pass for a digit or two has chains
// of operations so short that the processor overlaps them; all digits in one were slower.
template <int GROUP> inline void rotate_floats(const float * x, float * y, int64_t n, vi & most) {
    if (GROUP == 256) {
        for (int64_t i = 0; i < n; i += 256) {
            rotate_digit3(x + i, y + i);
        }
        x = y;
    }
    if (GROUP >= 16) {
        for (int64_t i = 0; i < n; i += GROUP == 16 ? TILE : 64) {
            rotate_digits21<(GROUP > 16)>(x + i, y + i);
        }
        x = y;
    }
    for (int64_t i = 0; i < n; i += TILE) {
        rotate_digit0<(GROUP >= 16)>(x + i, y + i, most);
    }
}

// y has room for whole tiles. The largest lane of the result is the largest magnitude's bits (a NaN's are the largest of all).
template <int GROUP> inline vi rotate_row(const float * x, float * y, int64_t k) {
    constexpr int BLOCK = 2048;
    vi            most  = {};
    const int64_t whole = k / TILE * TILE;
    for (int64_t i = 0; i < whole; i += BLOCK) {
        rotate_floats<GROUP>(x + i, y + i, min64(BLOCK, whole - i), most);
    }
    if (whole < k) {
        memset(y + whole, 0, TILE * sizeof(float));
        memcpy(y + whole, x + whole, static_cast<size_t>(k - whole) * sizeof(float));
        rotate_floats<GROUP>(y + whole, y + whole, TILE, most);
    }
    return most;
}

inline vi rotate_row(const float * x, float * y, int64_t k, int64_t group) {
    return group == 4    ? rotate_row<4>(x, y, k)
           : group == 16 ? rotate_row<16>(x, y, k)
           : group == 64 ? rotate_row<64>(x, y, k)
                         : rotate_row<256>(x, y, k);
}

} // namespace
