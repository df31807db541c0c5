#pragma once

// What becomes of the four vectors of a rotated tile.

#include "simd.h"

namespace {

// columns_i8 takes integers |v| < 128 as COLUMN + v, the bits of -(1.5 * 2^23 + 128 + v), and gives their bytes in the order
// of the row, in which they were before interleave_fours and, where dealt, deal_fours.
constexpr int32_t COLUMN = static_cast<int32_t>(0xCB400080);

#if defined(GGML_EXT_ISA_AVX2)

template <bool dealt> inline vi columns_i8(vi a, vi b, vi c, vi d) {
    // each word of COLUMN + v packs to v + 128 or, a negative one, to zero
    const __m256i ab   = _mm256_packus_epi16(__m256i(a), __m256i(b));
    const __m256i cd   = _mm256_packus_epi16(__m256i(c), __m256i(d));
    const __m128i same = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m128i swap = _mm_setr_epi8(1, 5, 9, 13, 0, 4, 8, 12, 3, 7, 11, 15, 2, 6, 10, 14);
    const __m256i all  = _mm256_shuffle_epi8(_mm256_packus_epi16(ab, cd), _mm256_setr_m128i(same, dealt ? swap : same));
    return vi(dealt ? all : _mm256_permutevar8x32_epi32(all, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7))) ^
           static_cast<int32_t>(0x80808080);
}

#else

template <bool dealt> inline vi columns_i8(vi a, vi b, vi c, vi d) {
    constexpr int32_t OTHERS = static_cast<int32_t>(0xCB400000u ^ 0x40000000u ^ 0x80808080u); // bits that are not of v
#    if defined(GGML_EXT_ISA_AVX512)
    constexpr int XOR = 0x96; // of three
    const __m512i abc = _mm512_ternarylogic_epi32(__m512i(a), __m512i(b << 8), __m512i(c << 16), XOR);
    const __m512i all = _mm512_ternarylogic_epi32(abc, __m512i(d << 24), _mm512_set1_epi32(OTHERS), XOR);
    return vi(dealt ? all : _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), all));
#    else
    return (a ^ b << 8) ^ (c << 16 ^ d << 24) ^ OTHERS;
#    endif
}

#endif

inline vi magnitude(vf v) {
    return bits(v) & 0x7FFFFFFF;
}

// The largest of most and a tile's magnitudes, as bits; the sign of a NaN may remain.
inline vi max_magnitude(vi most, const vf * r) {
#if defined(GGML_EXT_ISA_AVX512)
    // the larger one, its sign cleared; a number rather than a NaN, which has an infinity or only NaNs beside it in the four
    constexpr int MAGNITUDE = 0xB;
    const __m512  low       = _mm512_range_ps(__m512(r[0]), __m512(r[1]), MAGNITUDE);
    const __m512  high      = _mm512_range_ps(__m512(r[2]), __m512(r[3]), MAGNITUDE);
    return vi(_mm512_max_epu32(__m512i(most), _mm512_castps_si512(_mm512_range_ps(low, high, MAGNITUDE))));
#else
    return max(most, max(max(magnitude(r[0]), magnitude(r[1])), max(magnitude(r[2]), magnitude(r[3]))));
#endif
}

} // namespace
