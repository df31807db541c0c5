#pragma once

// The product in double precision, element by element, from the definition.

#include <cmath>
#include <cstdint>

namespace reference {

struct sum {
    double value;     // of the products
    double magnitude; // sum of their absolute values: what rounding errors scale with
};

inline sum dot(const float * x, const float * w, int64_t k) {
    sum s = {0, 0};
    for (int64_t i = 0; i < k; i++) {
        const double p = static_cast<double>(x[i]) * w[i];
        s.value += p;
        s.magnitude += std::fabs(p);
    }
    return s;
}

} // namespace reference
