#pragma once

// IEEE half precision as vectors of float.

#include "simd.h"

namespace {

constexpr uint16_t HALF_MINUS_INFINITY = 0xFC00;

typedef uint16_t vh __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

// Exact, denormals, infinities and NaN included.
inline vf from_half(vh h) {
    const vi wide  = __builtin_convertvector(h, vi);
    const vi value = (wide & 0x7FFF) << 13;
    // the exponent's bias, 15 to 127, by a multiplication: it makes denormals normal
    const vi finite = bits(from_bits(value) * 0x1p112f);
    const vi top    = value | 0x7F800000;
    const vi number = value >= 0x7C00 << 13 ? top : finite;
    return from_bits(number | ((wide & 0x8000) << 16));
}

// The first n lanes, the others zero.
inline vf take(const uint16_t * p, int n) {
    if (n == LANES) {
        return from_half(*reinterpret_cast<const vh *>(p));
    }
    vh h = {};
    memcpy(&h, p, static_cast<size_t>(n) * sizeof(uint16_t));
    return from_half(h);
}

} // namespace
