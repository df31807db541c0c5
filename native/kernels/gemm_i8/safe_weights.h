#pragma once

// Weights that the instruction which multiplies unsigned by signed bytes (x + 128 by w) and sums pairs in 16 bits cannot saturate,
// and what is left of the others: w = safe + rest.
//
// x + 128 is 255 at most, so a pair of products stays within 16 bits if the two weights' signs differ, or their magnitudes sum up to
// 128 at most (255 * 128 = 32640). Weights scaled by their row's largest exceed that rarely: of normally distributed ones 1.3 in 100
// with 384 in a row, 0.4 with 4096.

#include "simd.h"

namespace {

constexpr int SAFE_PAIR = 128;
constexpr int SAFE_SUM  = 128; // of the magnitudes of rests, whose products with x + 128 are summed up in 16 bits
constexpr int RUN       = 4;   // rests
constexpr int K_STEP    = 32;  // weights that are looked at together

// Rests of one column: k in the segment, and what is left of its weight; zeros where there are fewer.
struct rest_run {
    uint16_t k[RUN];
    int8_t   w[RUN];
    int32_t  column;
};

struct rest_writer {
    rest_run * runs;
    int64_t    most, n = 0;
    bool       full   = false;
    int        column = 0, in_run = RUN, magnitude = 0;

    void begin_column(int j) {
        column = j;
        in_run = RUN;
    }

    void add(int64_t k, int w) {
        magnitude += __builtin_abs(w);
        if (in_run == RUN || magnitude > SAFE_SUM) {
            if (n == most) {
                full = true;
                return;
            }
            runs[n]        = {};
            runs[n].column = column;
            n++;
            in_run    = 0;
            magnitude = __builtin_abs(w);
        }
        runs[n - 1].k[in_run] = static_cast<uint16_t>(k);
        runs[n - 1].w[in_run] = static_cast<int8_t>(w);
        in_run++;
    }
};

// Which groups of four of a step are not safe as they are, a bit each.
inline int unsafe_groups(__m256i w) {
    const __m256i one = _mm256_set1_epi8(1), magnitudes = _mm256_abs_epi8(w);
    const __m256i negative = _mm256_cmpgt_epi8(_mm256_setzero_si256(), w);
    const __m256i above    = _mm256_maddubs_epi16(_mm256_andnot_si256(negative, magnitudes), one); // unsigned, for the 128 of -128
    const __m256i below    = _mm256_maddubs_epi16(_mm256_and_si256(negative, magnitudes), one);
    const __m256i unsafe   = _mm256_cmpgt_epi16(_mm256_max_epi16(above, below), _mm256_set1_epi16(SAFE_PAIR));
    return ~_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(unsafe, _mm256_setzero_si256()))) & 0xFF;
}

// Takes from the larger of two weights of one sign what is too much.
inline void make_pair_safe(int8_t * w, int64_t k, rest_writer & rests) {
    const int excess = __builtin_abs(w[0] + w[1]) - SAFE_PAIR;
    if (excess > 0) {
        const int larger = __builtin_abs(w[0]) > __builtin_abs(w[1]) ? 0 : 1;
        const int left   = w[larger] > 0 ? excess : -excess;
        rests.add(k + larger, left);
        w[larger] = static_cast<int8_t>(w[larger] - left);
    }
}

// `depth` weights of one column of a segment, their safe groups of four `stride` bytes apart. Returns the sum of the weights.
inline int32_t pack_safe_column(const int8_t * w, int depth, int8_t * out, int64_t stride, rest_writer & rests) {
    int32_t total = 0;
    for (int k = 0; k < depth; k += K_STEP) {
        alignas(K_STEP) int8_t step[K_STEP] = {};
        const int              some         = depth - k < K_STEP ? depth - k : K_STEP;
        memcpy(step, w + k, static_cast<size_t>(some));
        for (const int8_t v : step) {
            total += v;
        }
        for (int unsafe = unsafe_groups(*reinterpret_cast<const __m256i *>(step)); unsafe != 0; unsafe &= unsafe - 1) {
            const int first = 4 * __builtin_ctz(static_cast<unsigned>(unsafe));
            make_pair_safe(step + first, k + first, rests);
            make_pair_safe(step + first + 2, k + first + 2, rests);
        }
        for (int i = 0; i < some; i += 4) {
            memcpy(out + (k + i) / 4 * stride, step + i, 4);
        }
    }
    return total;
}

} // namespace
