#pragma once

// Floats are read and written as floats: where they lie, and what lies between their rows, must be whole ones.

#include <stddef.h>
#include <stdint.h>

inline uintptr_t bytes_of(const void * p) {
    return reinterpret_cast<uintptr_t>(p);
}
inline uintptr_t bytes_of(size_t stride) {
    return stride;
}

// Whether pointers (null ones too) and strides are multiples of a float's size.
template <typename... T> bool float_aligned(T... pointers_and_strides) {
    return ((bytes_of(pointers_and_strides) | ...) % sizeof(float)) == 0;
}
