#pragma once

#include <arm_neon.h>

namespace {

constexpr int     LANES       = 4;
constexpr int     GEMM_MR     = 8;
constexpr int64_t BLOCK_BYTES = 256 << 10;

typedef float   vf __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(16), aligned(4), may_alias));

inline vf set1(float a) {
    return vf(vdupq_n_f32(a));
}
inline vf fma(vf a, vf b, vf c) {
    return vf(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
inline void add_product(vf & s, vf a, vf b) {
    s = fma(a, b, s);
}
// max and min are NaN where one operand is.
inline vf max(vf a, vf b) {
    return vf(vmaxq_f32(float32x4_t(a), float32x4_t(b)));
}
inline vf min(vf a, vf b) {
    return vf(vminq_f32(float32x4_t(a), float32x4_t(b)));
}
inline vi max(vi a, vi b) {
    return vi(vmaxq_s32(int32x4_t(a), int32x4_t(b)));
}
inline vf swap_pairs(vf v) {
    return vf(vrev64q_f32(float32x4_t(v)));
}

// a0 b0 a1 b1 ... in two vectors
inline void interleave(vf a, vf b, vf & low, vf & high) {
    low  = vf(vzip1q_f32(float32x4_t(a), float32x4_t(b)));
    high = vf(vzip2q_f32(float32x4_t(a), float32x4_t(b)));
}

inline void interleave_fours(vf a, vf b, vf & low, vf & high) {
    interleave(a, b, low, high);
}

// Fours of lanes to vectors 0 1 2 3.
inline void deal_fours(vf &, vf &, vf &, vf &) {}

// Four vectors of integers within [-128, 127] to 4*LANES bytes.
inline void store_i8(int8_t * p, vi a, vi b, vi c, vi d) {
    const int16x8_t ab = vcombine_s16(vmovn_s32(int32x4_t(a)), vmovn_s32(int32x4_t(b)));
    const int16x8_t cd = vcombine_s16(vmovn_s32(int32x4_t(c)), vmovn_s32(int32x4_t(d)));
    vst1q_s8(p, vcombine_s8(vmovn_s16(ab), vmovn_s16(cd)));
}

} // namespace
