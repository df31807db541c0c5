#pragma once

// Vector exp, sine, cosine and GELU. Coefficients are least-maximum-error fits, made for these ranges.

#include "simd.h"

namespace {

// exp(hi + lo - m ln 2) for an integer m that leaves no more than ln 2 / 2. ln 2 comes in two parts; m times the first is exact.
inline vf exp_remainder(vf hi, vf lo, vf m) {
    const vf r = fma(m, set1(-0.693359375f), hi) + fma(m, set1(2.12194440e-4f), lo);

    vf p = set1(0.0013813133f);
    p    = fma(p, r, set1(0.0083694244f));
    p    = fma(p, r, set1(0.041668456f));
    p    = fma(p, r, set1(0.16666515f));
    p    = fma(p, r, set1(0.49999994f));
    return fma(p, r * r, r) + 1.0f;
}

// exp(x), x clamped to [-128, 89]. NaN stays NaN.
inline vf exp(vf x) {
    x          = min(set1(89.0f), max(set1(-128.0f), x)); // this order of operands keeps NaN
    const vi n = round_even(x * 1.44269504f);
    // 2^n as two factors, so that neither leaves the exponent range
    const vi half = n >> 1;
    return exp_remainder(x, vf{}, to_float(n)) * from_bits((half + 127) << 23) * from_bits((n - half + 127) << 23);
}

// exp(hi + lo) for |lo| < 0.1 and a sum of at most 0; hi is used as if exact. Zero below exp(-87). NaN stays NaN.
inline vf exp_not_positive(vf hi, vf lo) {
    const float magic = 12582912.0f; // 1.5 * 2^23: the low bits of a sum with it are the other number, rounded
    const vf    x     = hi + lo;
    const vf    n     = fma(x, set1(1.44269504f), set1(magic));
    const vi    e     = wrapping_add(bits(exp_remainder(hi, lo, n - magic)), bits(n) << 23); // without meaning below exp(-87)
    return x >= -87.0f ? from_bits(e) : max(vf{}, x); // in this order of operands NaN stays
}

#if !defined(GGML_EXT_ISA_SCALAR) // needs a fused fma

// Sine and cosine, each to within 1e-7, for |x| <= TURN_LIMIT; beyond it the rounding of the quotient shows.
constexpr float TURN_LIMIT = 1048576.0f;

inline void sine_cosine(vf x, vf & sine, vf & cosine) {
    const vi n = round_even(x * 0.63661975f);
    const vf m = to_float(n);
    // pi/2 in three parts; with the first one the difference is exact
    vf r       = fma(m, set1(-1.5707964f), x);
    r          = fma(m, set1(4.371139e-8f), r);
    r          = fma(m, set1(1.7151245e-15f), r);
    const vf z = r * r;

    vf s = fma(z, set1(-1.9446373e-4f), set1(8.331563e-3f));
    s    = fma(fma(s, z, set1(-0.16666643f)), z * r, r);
    vf c = fma(z, set1(2.4386627e-5f), set1(-1.3886901e-3f));
    c    = fma(fma(c, z, set1(4.1666638e-2f)), z * z, fma(z, set1(-0.5f), set1(1.0f)));

    const vi odd = -(n & 1);
    sine         = from_bits(((bits(s) & ~odd) | (bits(c) & odd)) ^ ((n & 2) << 30));
    cosine       = from_bits(((bits(c) & ~odd) | (bits(s) & odd)) ^ (((n + 1) & 2) << 30));
}

#endif

// x * Phi(x). The tail Phi(-|x|) is exp(-x^2/2) times a smooth function, so that the relative error is
// small where 1 + erf(x/sqrt 2) would cancel; x^2 is split so that its rounding does not reach the exponent.
inline vf gelu_erf(vf x) {
    const vf a  = from_bits(bits(x) & 0x7FFFFFFF);
    const vf c  = min(set1(15.0f), a);
    const vf ch = from_bits(bits(c) & ~0xFFF);
    const vf e  = exp_not_positive(ch * ch * -0.5f, (c + ch) * (c - ch) * -0.5f);
    const vf t  = 1.0f / fma(c, set1(0.35f), set1(1.0f));

    vf p = set1(-0.029163787f);
    p    = fma(p, t, set1(0.14406015f));
    p    = fma(p, t, set1(-0.25590056f));
    p    = fma(p, t, set1(0.15939149f));
    p    = fma(p, t, set1(-0.023262912f));
    p    = fma(p, t, set1(0.10557444f));
    p    = fma(p, t, set1(0.11981559f));
    p    = fma(p, t, set1(0.13986433f));
    p    = fma(p, t, set1(0.13962126f));

    const vf tail = e * p * t;
    return x * (x > vf{} ? 1.0f - tail : tail);
}

// GELU of a part of a matrix, in place. Not inlined into the products: it would take their registers.
inline __attribute__((noinline)) void gelu_erf_tile(float * first, size_t stride, int rows, int columns) {
    for (int r = 0; r < rows; r++) {
        float * c = reinterpret_cast<float *>(reinterpret_cast<char *>(first) + static_cast<size_t>(r) * stride);
        int     j = 0;
        for (; j + LANES <= columns; j += LANES) {
            store(c + j, gelu_erf(load(c + j)));
        }
        if (j < columns) {
            store_n(c + j, gelu_erf(load_n(c + j, columns - j)), columns - j);
        }
    }
}

} // namespace
