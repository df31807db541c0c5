#pragma once

// Rows of any length as vectors: whole ones, then one that is filled in part.

#include "simd.h"

namespace {

// Calls f(i, n) for each vector of a row of size floats; its first n lanes count.
template <typename F> inline void each_vector(int64_t size, const F & f) {
    const int64_t whole = size / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        f(i, LANES);
    }
    if (whole < size) {
        f(whole, static_cast<int>(size - whole));
    }
}

inline vf take(const float * p, int n) {
    return n == LANES ? load(p) : load_n(p, n);
}

inline void put(float * p, vf v, int n) {
    if (n == LANES) {
        store(p, v);
    } else {
        store_n(p, v, n);
    }
}

// v with zeros beyond lane n.
inline vf only(vf v, int n) {
    if (n < LANES) {
        vf some = {};
        memcpy(&some, &v, static_cast<size_t>(n) * sizeof(float));
        return some;
    }
    return v;
}

} // namespace
