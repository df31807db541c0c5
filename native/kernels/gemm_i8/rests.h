#pragma once

// The products of x with the rests of a panel's columns (safe_weights.h): what the sums of its safe weights begin with.

#include "pack_x.h"
#include "safe_weights.h"
#include "tile_sums.h"

namespace {

constexpr int UNIT = 32; // rows that a rest is multiplied by at once

// What the sums of a unit begin with. Rows that it does not have are neither set nor used.
struct beginnings {
    alignas(64) int32_t by_column[UNIT / LANES][NR][LANES];
    alignas(64) int32_t by_row[UNIT][NR];
};

inline __m256i load_bytes(const void * p) {
    return _mm256_loadu_si256(static_cast<const __m256i *>(p));
}

// x + 128 by columns of k: LANES rows, of which the last may be repeated, at UNIT bytes from k to k.
inline void pack_columns(const int8_t * x, size_t x_stride, int64_t rows, int64_t depth, char * out) {
    constexpr int  STEP = 16;
    typedef char   bytes __attribute__((vector_size(STEP), aligned(1), may_alias));
    const int8_t * row[LANES];
    for (int r = 0; r < LANES; r++) {
        row[r] = x + static_cast<size_t>(min64(r, rows - 1)) * x_stride;
    }
    int64_t k = 0;
    for (; k + STEP <= depth; k += STEP) {
        bytes v[LANES];
        for (int r = 0; r < LANES; r++) {
            v[r] = *reinterpret_cast<const bytes *>(row[r] + k) ^ static_cast<char>(byte_groups::OFFSET);
        }
        for (int round = 0; round < 3; round++) { // each deals the halves' vectors byte by byte
            const bytes from[LANES] = {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
            for (int i = 0; i < LANES / 2; i++) {
                v[2 * i]     = bytes(_mm_unpacklo_epi8(__m128i(from[i]), __m128i(from[i + LANES / 2])));
                v[2 * i + 1] = bytes(_mm_unpackhi_epi8(__m128i(from[i]), __m128i(from[i + LANES / 2])));
            }
        }
        for (int i = 0; i < LANES; i++, out += 2 * UNIT) {
            memcpy(out, &v[i], LANES);
            memcpy(out + UNIT, reinterpret_cast<const char *>(&v[i]) + LANES, LANES);
        }
    }
    for (; k < depth; k++, out += UNIT) {
        for (int r = 0; r < LANES; r++) {
            out[r] = static_cast<char>(row[r][k] + byte_groups::OFFSET);
        }
    }
}

inline void add_widened(int32_t * to, __m128i sums) {
    store(to, wrapping_add(load(to), vi(_mm256_cvtepi16_epi32(sums))));
}

// The products of two k with their rests, of eight rows in `low`, and of the next eight in `high`.
inline void add_two(const char * x0, const char * x1, const int8_t * w, __m128i & low, __m128i & high) {
    const __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x0)), b = _mm_loadu_si128(reinterpret_cast<const __m128i *>(x1));
    int16_t       both;
    memcpy(&both, w, sizeof(both));
    low  = _mm_add_epi16(low, _mm_maddubs_epi16(_mm_unpacklo_epi8(a, b), _mm_set1_epi16(both)));
    high = _mm_add_epi16(high, _mm_maddubs_epi16(_mm_unpackhi_epi8(a, b), _mm_set1_epi16(both)));
}

// The same of two times 16 rows.
inline void add_two(const char * x0, const char * x1, const int8_t * w, __m256i & low, __m256i & high) {
    const __m256i a = load_bytes(x0), b = load_bytes(x1);
    int16_t       both;
    memcpy(&both, w, sizeof(both));
    low  = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), _mm256_set1_epi16(both)));
    high = _mm256_add_epi16(high, _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), _mm256_set1_epi16(both)));
}

// Adds the products of a unit of x, of E times eight rows, with the rests of a segment.
template <int E> void add_rests(const rest_run * begin, const rest_run * end, const char * x, beginnings & to) {
    for (const rest_run * run = begin; run < end; run++) {
        const int j = run->column;
        if constexpr (E <= 2) {
            __m128i low = _mm_setzero_si128(), high = low;
            add_two(x + run->k[0] * UNIT, x + run->k[1] * UNIT, run->w, low, high);
            add_two(x + run->k[2] * UNIT, x + run->k[3] * UNIT, run->w + 2, low, high);
            add_widened(to.by_column[0][j], low);
            if constexpr (E == 2) {
                add_widened(to.by_column[1][j], high);
            }
        } else {
            __m256i low = _mm256_setzero_si256(), high = low;
            add_two(x + run->k[0] * UNIT, x + run->k[1] * UNIT, run->w, low, high);
            add_two(x + run->k[2] * UNIT, x + run->k[3] * UNIT, run->w + 2, low, high);
            add_widened(to.by_column[0][j], _mm256_castsi256_si128(low));
            add_widened(to.by_column[1][j], _mm256_castsi256_si128(high));
            add_widened(to.by_column[2][j], _mm256_extracti128_si256(low, 1));
            add_widened(to.by_column[3][j], _mm256_extracti128_si256(high, 1));
        }
    }
}

// Eight columns by eight rows.
inline void transpose(const int32_t (*from)[LANES], int32_t (*to)[NR], int first) {
    vf v[LANES];
    for (int j = 0; j < LANES; j++) {
        v[j] = from_bits(load(from[j]));
    }
    transpose(v);
    for (int r = 0; r < LANES; r++) {
        store(to[r] + first, bits(v[r]));
    }
}

} // namespace
