#pragma once

#include <immintrin.h>

namespace {

constexpr int     LANES       = 8;
constexpr int     GEMM_MR     = 6;
constexpr int64_t BLOCK_BYTES = 256 << 10;

typedef float   vf __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(32), aligned(4), may_alias));

inline vf set1(float a) {
    return vf(_mm256_set1_ps(a));
}
inline vf fma(vf a, vf b, vf c) {
    return vf(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(c)));
}
// s += a * b, in the register of s. GCC also takes the forms of the instruction that write over a factor; a tile's sums then move from
// register to register, of which there are no spare ones.
inline void add_product(vf & s, vf a, vf b) {
    __asm__("vfmadd231ps %2, %1, %0" : "+x"(s) : "x"(a), "x"(b));
}
// max and min give their second operand where one is NaN.
inline vf max(vf a, vf b) {
    return vf(_mm256_max_ps(__m256(a), __m256(b)));
}
inline vf min(vf a, vf b) {
    return vf(_mm256_min_ps(__m256(a), __m256(b)));
}
inline vi max(vi a, vi b) {
    return vi(_mm256_max_epi32(__m256i(a), __m256i(b)));
}

inline vf swap_pairs(vf v) {
    return vf(_mm256_permute_ps(__m256(v), 0xB1));
}

// a0 b0 a1 b1 ... in two vectors, for each four lanes
inline void interleave_fours(vf a, vf b, vf & low, vf & high) {
    low  = vf(_mm256_unpacklo_ps(__m256(a), __m256(b)));
    high = vf(_mm256_unpackhi_ps(__m256(a), __m256(b)));
}

// a0 b0 a1 b1 ... in two vectors
inline void interleave(vf a, vf b, vf & low, vf & high) {
    vf even, odd;
    interleave_fours(a, b, even, odd);
    low  = vf(_mm256_permute2f128_ps(__m256(even), __m256(odd), 0x20));
    high = vf(_mm256_permute2f128_ps(__m256(even), __m256(odd), 0x31));
}

// Fours of lanes 0..7 to vectors 0 1 2 3 1 0 3 2: a blend for each shuffle across halves, of which there is one a cycle.
inline void deal_fours(vf & a, vf & b, vf & c, vf & d) {
    const __m256 a0 = __m256(a), b0 = __m256(b), c0 = __m256(c), d0 = __m256(d);
    a = vf(_mm256_blend_ps(a0, c0, 0xF0));
    b = vf(_mm256_permute2f128_ps(a0, c0, 0x21));
    c = vf(_mm256_blend_ps(b0, d0, 0xF0));
    d = vf(_mm256_permute2f128_ps(b0, d0, 0x21));
}

inline void store_i8(int8_t * p, vi a, vi b, vi c, vi d) {
    const __m256i ab    = _mm256_packs_epi32(__m256i(a), __m256i(b));
    const __m256i cd    = _mm256_packs_epi32(__m256i(c), __m256i(d));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7); // packs work on each 128-bit half
    const __m256i all   = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(ab, cd), order);
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(p), all);
}

} // namespace
