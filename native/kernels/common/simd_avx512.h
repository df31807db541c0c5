#pragma once

#include <immintrin.h>

namespace {

constexpr int     LANES       = 16;
constexpr int     GEMM_MR     = 12;
constexpr int64_t BLOCK_BYTES = 352 << 10;

typedef float   vf __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(64), aligned(4), may_alias));

inline vf set1(float a) {
    return vf(_mm512_set1_ps(a));
}
inline vf fma(vf a, vf b, vf c) {
    return vf(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(c)));
}
inline void add_product(vf & s, vf a, vf b) {
    s = fma(a, b, s);
}
// The instruction broadcasts a itself. GCC loads it once where it is used twice.
inline void add_product(vf & s, const float & a, vf b) {
    __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(s) : "v"(b), "m"(a));
}
// max and min give their second operand where one is NaN.
inline vf max(vf a, vf b) {
    return vf(_mm512_max_ps(__m512(a), __m512(b)));
}
inline vf min(vf a, vf b) {
    return vf(_mm512_min_ps(__m512(a), __m512(b)));
}
inline vi max(vi a, vi b) {
    return vi(_mm512_max_epi32(__m512i(a), __m512i(b)));
}

inline vf swap_pairs(vf v) {
    return vf(_mm512_permute_ps(__m512(v), 0xB1));
}

// a0 b0 a1 b1 ... in two vectors
inline void interleave(vf a, vf b, vf & low, vf & high) {
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    low                 = vf(_mm512_permutex2var_ps(__m512(a), first, __m512(b)));
    high                = vf(_mm512_permutex2var_ps(__m512(a), _mm512_add_epi32(first, _mm512_set1_epi32(8)), __m512(b)));
}

// a0 b0 a1 b1 ... in two vectors, for each four lanes
inline void interleave_fours(vf a, vf b, vf & low, vf & high) {
    low  = vf(_mm512_unpacklo_ps(__m512(a), __m512(b)));
    high = vf(_mm512_unpackhi_ps(__m512(a), __m512(b)));
}

// Fours of lanes 0..15 to vectors 0 1 2 3 0 1 2 3 ...
inline void deal_fours(vf & a, vf & b, vf & c, vf & d) {
    const __m512 ab01 = _mm512_shuffle_f32x4(__m512(a), __m512(b), 0x44), ab23 = _mm512_shuffle_f32x4(__m512(a), __m512(b), 0xEE);
    const __m512 cd01 = _mm512_shuffle_f32x4(__m512(c), __m512(d), 0x44), cd23 = _mm512_shuffle_f32x4(__m512(c), __m512(d), 0xEE);
    a = vf(_mm512_shuffle_f32x4(ab01, cd01, 0x88));
    b = vf(_mm512_shuffle_f32x4(ab01, cd01, 0xDD));
    c = vf(_mm512_shuffle_f32x4(ab23, cd23, 0x88));
    d = vf(_mm512_shuffle_f32x4(ab23, cd23, 0xDD));
}

inline void store_i8(int8_t * p, vi a, vi b, vi c, vi d) {
    __m128i * out = reinterpret_cast<__m128i *>(p);
    _mm_storeu_si128(out, _mm512_cvtepi32_epi8(__m512i(a)));
    _mm_storeu_si128(out + 1, _mm512_cvtepi32_epi8(__m512i(b)));
    _mm_storeu_si128(out + 2, _mm512_cvtepi32_epi8(__m512i(c)));
    _mm_storeu_si128(out + 3, _mm512_cvtepi32_epi8(__m512i(d)));
}

} // namespace
