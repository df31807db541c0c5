#pragma once

// The fast transform: y = H4 x for four values is y[i] = (x[0] + x[1] + x[2] + x[3]) / 2 - x[3 - i], applied to
// each base-4 digit of the index in turn. Digit 0 lies within four lanes, digit 1 within a vector or across
// vectors, digits 2 and 3 across vectors.

#include "simd.h"

namespace {

inline void h4(vf & a, vf & b, vf & c, vf & d) {
    const vf s = (a + b) + (c + d), half = set1(0.5f);
    const vf y0 = fma(s, half, -d), y1 = fma(s, half, -c), y2 = fma(s, half, -b), y3 = fma(s, half, -a);
    a = y0;
    b = y1;
    c = y2;
    d = y3;
}

#if defined(GGML_EXT_ISA_AVX512)

inline vf h4_lanes(vf v) {
    vf s = v + swap_pairs(v);
    s += vf(_mm512_permute_ps(__m512(s), 0x4E));
    return fma(s, set1(0.5f), -vf(_mm512_permute_ps(__m512(v), 0x1B)));
}

inline void h4_digit1(vf * r) {
    const __m512 v = __m512(r[0]);
    vf           s = r[0] + vf(_mm512_shuffle_f32x4(v, v, 0xB1));
    s += vf(_mm512_shuffle_f32x4(__m512(s), __m512(s), 0x4E));
    r[0] = fma(s, set1(0.5f), -vf(_mm512_shuffle_f32x4(v, v, 0x1B)));
}

#elif defined(GGML_EXT_ISA_AVX2)

inline vf h4_lanes(vf v) {
    vf s = v + swap_pairs(v);
    s += vf(_mm256_permute_ps(__m256(s), 0x4E));
    return fma(s, set1(0.5f), -vf(_mm256_permute_ps(__m256(v), 0x1B)));
}

inline vf swap_halves(vf v) {
    return vf(_mm256_permute2f128_ps(__m256(v), __m256(v), 1));
}

inline void h4_digit1(vf * r) {
    vf s = r[0] + r[1];
    s += swap_halves(s);
    const vf y0 = fma(s, set1(0.5f), -swap_halves(r[1]));
    r[1]        = fma(s, set1(0.5f), -swap_halves(r[0]));
    r[0]        = y0;
}

#else

inline vf h4_lanes(vf v) {
    vf s = v + swap_pairs(v);
    s += GGML_EXT_LANES(s, 2, 3, 0, 1);
    return fma(s, set1(0.5f), -GGML_EXT_LANES(v, 3, 2, 1, 0));
}

inline void h4_digit1(vf * r) {
    h4(r[0], r[1], r[2], r[3]);
}

#endif

constexpr int V16 = 16 / LANES; // vectors of 16 floats

inline void rotate4(vf * r) {
    r[0] = h4_lanes(r[0]);
}

inline void rotate16(vf * r) {
#pragma GCC unroll 4
    for (int i = 0; i < V16; i++) {
        r[i] = h4_lanes(r[i]);
    }
    h4_digit1(r);
}

inline void rotate64(vf * r) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        rotate16(r + i * V16);
    }
#pragma GCC unroll 4
    for (int i = 0; i < V16; i++) {
        h4(r[i], r[i + V16], r[i + 2 * V16], r[i + 3 * V16]);
    }
}

inline vi magnitude(vf v) {
    return bits(v) & 0x7FFFFFFF;
}

// n vectors at x through f to y; the largest magnitude, as bits, into most.
template <int N, void f(vf *)> inline void rotate_store(const float * x, float * y, vi & most) {
    vf r[N];
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) {
        r[i] = load(x + i * LANES);
    }
    f(r);
#pragma GCC unroll 16
    for (int i = 0; i < N; i++) {
        store(y + i * LANES, r[i]);
        most = max(most, magnitude(r[i]));
    }
}

// Rotates a row of k floats; the result is the largest magnitude's bits (a NaN's are the largest of all).
inline int32_t rotate_row(const float * x, float * y, int64_t k, int64_t group) {
    vi most = {};
    switch (group) {
        case 4: {
            const int64_t whole = k / LANES * LANES;
            for (int64_t i = 0; i < whole; i += LANES) {
                rotate_store<1, rotate4>(x + i, y + i, most);
            }
            const vf v = h4_lanes(load_n(x + whole, static_cast<int>(k - whole)));
            store_n(y + whole, v, static_cast<int>(k - whole));
            most = max(most, magnitude(v));
            break;
        }
        case 16:
            for (int64_t i = 0; i < k; i += 16) {
                rotate_store<V16, rotate16>(x + i, y + i, most);
            }
            break;
        case 64:
            for (int64_t i = 0; i < k; i += 64) {
                rotate_store<4 * V16, rotate64>(x + i, y + i, most);
            }
            break;
        default:
            for (int64_t i = 0; i < k; i += 256) {
                vi inner = {};
                for (int j = 0; j < 256; j += 64) {
                    rotate_store<4 * V16, rotate64>(x + i + j, y + i + j, inner);
                }
                for (int j = 0; j < 64; j += LANES) {
                    float * p = y + i + j;
                    vf      a = load(p), b = load(p + 64), c = load(p + 128), d = load(p + 192);
                    h4(a, b, c, d);
                    store(p, a);
                    store(p + 64, b);
                    store(p + 128, c);
                    store(p + 192, d);
                    most = max(max(max(most, magnitude(a)), magnitude(b)), max(magnitude(c), magnitude(d)));
                }
            }
            break;
    }
    return max_lane(most);
}

} // namespace
