// The smallest functions there are, for the costs of calls between Java and C.

#include "ggml-ext.h"

GGML_EXT_API int64_t bench_add(int64_t a, int64_t b) {
    return a + b;
}

// The sum of function(0) .. function(count - 1).
GGML_EXT_API int64_t bench_repeat(int64_t (*function)(int64_t), int64_t count) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += function(i);
    }
    return sum;
}

// What the Java function of the upcall does, in C.
GGML_EXT_API int64_t bench_increment(int64_t value) {
    return value + 1;
}
