#pragma once

// What the entries of all families check of their arguments.

#include <stddef.h>
#include <stdint.h>

// Whether all extents are at least 1, and so few in all that no count of bytes or operations leaves 64 bits.
template <typename... T> bool extents_ok(T... extents) {
    constexpr int64_t MOST  = int64_t{1} << 56;
    int64_t           total = 1;
    const auto        fits  = [&total](int64_t n) { return n >= 1 && n <= MOST / total && (total *= n) > 0; };
    return (fits(extents) && ...);
}

inline bool thread_ok(int ith, int nth) {
    return ith >= 0 && ith < nth;
}

inline uintptr_t bytes_of(const void * p) {
    return reinterpret_cast<uintptr_t>(p);
}
inline uintptr_t bytes_of(size_t stride) {
    return stride;
}

// Whether pointers (null ones too) and strides are multiples of a float's size: floats are read and written as floats.
template <typename... T> bool float_aligned(T... pointers_and_strides) {
    return ((bytes_of(pointers_and_strides) | ...) % sizeof(float)) == 0;
}
