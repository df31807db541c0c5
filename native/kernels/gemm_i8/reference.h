#pragma once

// I8-1 as it is written: the sum in int64, then three float operations, each rounded on its own.

#include <cstdint>

namespace reference {

inline int64_t dot_i8(const int8_t * x, const int8_t * w, int64_t k) {
    int64_t sum = 0;
    for (int64_t i = 0; i < k; i++) {
        sum += int64_t{x[i]} * w[i];
    }
    return sum;
}

inline float scaled(int64_t sum, const float * x_scale, const float * w_scale, const float * bias) {
    volatile float y = static_cast<float>(sum); // volatile: no contraction, no excess precision
    if (x_scale) {
        y = y * *x_scale;
    }
    if (w_scale) {
        y = y * *w_scale;
    }
    if (bias) {
        y = y + *bias;
    }
    return y;
}

} // namespace reference
