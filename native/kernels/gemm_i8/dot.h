#pragma once

// The one step that differs between instruction sets. A group is K_GROUP successive k of one row of x, held in
// 32 bits; dot adds to each of LANES sums the products of a group of x with the groups of LANES columns.

#include "pack_x.h"

namespace {

#if defined(GGML_EXT_ISA_AVX2)

// Products of int16 pairs, summed in int32: exact for all int8, where the int8 instruction would saturate.
typedef vi w_vector;

inline w_vector load_w(const int8_t * p) {
    return vi(_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p))));
}

inline vi dot(vi sum, int32_t x, w_vector w) {
    return vi(_mm256_add_epi32(__m256i(sum), _mm256_madd_epi16(_mm256_set1_epi32(x), __m256i(w))));
}

#elif defined(GGML_EXT_ISA_NEON)

typedef vi w_vector;

inline w_vector load_w(const int8_t * p) {
    return vi(vmovl_s8(vld1_s8(p)));
}

inline vi dot(vi sum, int32_t x, w_vector w) {
    const int16x8_t a = vreinterpretq_s16_s32(vdupq_n_s32(x)), b = int16x8_t(w);
    return sum + vi(vpaddq_s32(vmull_s16(vget_low_s16(a), vget_low_s16(b)), vmull_high_s16(a, b)));
}

#else

struct w_vector {
    vi even, odd; // of k
};

inline w_vector load_w(const int8_t * p) {
    w_vector w;
    for (int i = 0; i < LANES; i++) {
        w.even[i] = p[2 * i];
        w.odd[i]  = p[2 * i + 1];
    }
    return w;
}

inline vi dot(vi sum, int32_t x, w_vector w) {
    int16_t pair[2];
    memcpy(pair, &x, sizeof(pair));
    return sum + set1(int32_t{pair[0]}) * w.even + set1(int32_t{pair[1]}) * w.odd;
}

#endif

constexpr int K_GROUP = pair_groups::SIZE;

static_assert(K_GROUP * sizeof(pair_groups::element) == sizeof(int32_t), "a group of x is one broadcast");

} // namespace
