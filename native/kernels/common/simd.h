#pragma once

// One vector type a translation unit, chosen by the build (GGML_EXT_ISA_*). Everything lives in an unnamed
// namespace and avoids inline functions of the standard library: the linker must never take code that was
// compiled for a wider instruction set for a narrower one.

#include <stdint.h>
#include <string.h>

// Lanes of a vector of four, or of two of them, in another order.
#if defined(__clang__)
#    define GGML_EXT_LANES(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#    define GGML_EXT_LANES_OF(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else // GCC has the other one since 12
#    define GGML_EXT_LANES(v, ...) __builtin_shuffle(v, vi{__VA_ARGS__})
#    define GGML_EXT_LANES_OF(a, b, ...) __builtin_shuffle(a, b, four_lanes{__VA_ARGS__})
#endif

#if defined(GGML_EXT_ISA_AVX512)
#    include "simd_avx512.h"
#elif defined(GGML_EXT_ISA_AVX2)
#    include "simd_avx2.h"
#elif defined(GGML_EXT_ISA_NEON)
#    include "simd_neon.h"
#else
#    include "simd_generic.h"
#endif

namespace {

// Four lanes, with every instruction set.
typedef float   four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_lanes __attribute__((vector_size(16), aligned(4), may_alias));

inline int64_t min64(int64_t a, int64_t b) {
    return a < b ? a : b;
}

inline vf load(const float * p) {
    return *reinterpret_cast<const vf *>(p);
}
inline vi load(const int32_t * p) {
    return *reinterpret_cast<const vi *>(p);
}
inline void store(float * p, vf v) {
    *reinterpret_cast<vf *>(p) = v;
}
inline void store(int32_t * p, vi v) {
    *reinterpret_cast<vi *>(p) = v;
}

#if !defined(GGML_EXT_ISA_AVX512)
inline void add_product(vf & s, const float & a, vf b) {
    add_product(s, set1(a), b);
}
#endif

inline vi set1(int32_t a) {
    return vi{} + a;
}

inline vi bits(vf v) {
    return reinterpret_cast<vi &>(v);
}
inline vf from_bits(vi v) {
    return reinterpret_cast<vf &>(v);
}

// Where a sum may leave int32: that of signed lanes must not.
inline vi wrapping_add(vi a, vi b) {
    typedef uint32_t vu __attribute__((vector_size(sizeof(vi))));
    return vi(vu(a) + vu(b));
}

// The first n lanes, the others zero.
inline vf load_n(const float * p, int n) {
    vf v = {};
    memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
    return v;
}

inline void store_n(float * p, vf v, int n) {
    memcpy(p, &v, static_cast<size_t>(n) * sizeof(float));
}

// Rows become columns.
inline void transpose(vf (&m)[LANES]) {
    for (int step = 1; step < LANES; step *= 2) {
        vf next[LANES];
#pragma GCC unroll 16
        for (int i = 0; i < LANES / 2; i++) {
            interleave(m[i], m[i + LANES / 2], next[2 * i], next[2 * i + 1]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++) {
            m[i] = next[i];
        }
    }
}

inline vf to_float(vi v) {
    return __builtin_convertvector(v, vf);
}

inline float sum(vf v) {
    float lanes[LANES];
    store(lanes, v);
    for (int w = LANES / 2; w > 0; w /= 2) {
        for (int i = 0; i < w; i++) {
            lanes[i] += lanes[i + w];
        }
    }
    return lanes[0];
}

inline int32_t max_lane(vi v) {
    const auto larger = [](four_lanes a, four_lanes b) { return a > b ? a : b; };
    four_lanes parts[LANES / 4];
    memcpy(parts, &v, sizeof(v));
    for (int i = 1; i < LANES / 4; i++) {
        parts[0] = larger(parts[0], parts[i]);
    }
    const four_lanes two = larger(parts[0], GGML_EXT_LANES_OF(parts[0], parts[0], 2, 3, 0, 1));
    return larger(two, GGML_EXT_LANES_OF(two, two, 1, 0, 3, 2))[0];
}

inline float max_lane(vf v) {
    float lanes[LANES];
    store(lanes, v);
    float m = lanes[0];
    for (int i = 1; i < LANES; i++) {
        m = lanes[i] > m ? lanes[i] : m;
    }
    return m;
}

// Round half to even to an integer, for |v| < 2^22: the sum's low mantissa bits are the integer.
inline vi round_even(vf v) {
    const float magic = 12582912.0f; // 1.5 * 2^23
    return bits(v + magic) - 0x4B400000;
}

} // namespace
