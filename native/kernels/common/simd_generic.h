#pragma once

// The baseline of the target: four lanes, whatever the compiler makes of them.

namespace {

constexpr int     LANES       = 4;
constexpr int     GEMM_MR     = 4;   // rows of x in a register tile; the tile is GEMM_MR x 2 vectors
constexpr int64_t BLOCK_BYTES = 256 << 10; // of x and a panel of weights, which stay in L2

typedef float   vf __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(16), aligned(4), may_alias));

inline vf set1(float a) {
    return vf{a, a, a, a};
}
inline vf fma(vf a, vf b, vf c) {
    return a * b + c;
}
inline void add_product(vf & s, vf a, vf b) {
    s = fma(a, b, s);
}

// max and min give their second operand where one is NaN.
inline vf max(vf a, vf b) {
    return a > b ? a : b;
}
inline vf min(vf a, vf b) {
    return a < b ? a : b;
}

inline vi max(vi a, vi b) {
    return a > b ? a : b;
}

inline vf swap_pairs(vf v) {
    return GGML_EXT_LANES(v, 1, 0, 3, 2);
}

// a0 b0 a1 b1 ... in two vectors
inline void interleave(vf a, vf b, vf & low, vf & high) {
    low  = vf{a[0], b[0], a[1], b[1]};
    high = vf{a[2], b[2], a[3], b[3]};
}

inline void interleave_fours(vf a, vf b, vf & low, vf & high) {
    interleave(a, b, low, high);
}

// Fours of lanes to vectors 0 1 2 3.
inline void deal_fours(vf &, vf &, vf &, vf &) {}

// Four vectors of integers within [-128, 127] to 4*LANES bytes.
inline void store_i8(int8_t * p, vi a, vi b, vi c, vi d) {
    for (int i = 0; i < LANES; i++) {
        p[i]             = static_cast<int8_t>(a[i]);
        p[i + LANES]     = static_cast<int8_t>(b[i]);
        p[i + 2 * LANES] = static_cast<int8_t>(c[i]);
        p[i + 3 * LANES] = static_cast<int8_t>(d[i]);
    }
}

} // namespace
