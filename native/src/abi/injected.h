#pragma once
// Sources that planning adds to nodes so that ggml's allocator sees them (plan/inject.h). The first of a node's added sources
// is always one of our leaves, which tells by itself what it is; all behind it are added too.

#include "abi/mirror.h"

namespace ggml_ext {

inline char INJECTED; // its address is the mark

// Leaves lie at multiples of this, so that the mark of hardly any other tensor must be fetched from memory.
constexpr uintptr_t LEAF_ALIGNMENT = 1024;

inline bool is_injected(const ggml_tensor * tensor) {
    return tensor != nullptr && reinterpret_cast<uintptr_t>(tensor) % LEAF_ALIGNMENT == 0 && tensor->extra == &INJECTED;
}

// Takes a node's added sources off; true if there were any.
inline bool strip_injected(ggml_tensor * node) {
    for (int i = 0; i < 10; ++i) {
        if (is_injected(node->src[i])) {
            for (; i < 10; ++i) {
                node->src[i] = nullptr;
            }
            return true;
        }
    }
    return false;
}

} // namespace ggml_ext
