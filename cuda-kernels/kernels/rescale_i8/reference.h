#pragma once

// One element in double precision. The order of operations does not matter there.

#include <cstdint>

namespace reference {

inline double rescaled(int32_t sum, double x_scale, double w_scale, double bias) {
    return sum * x_scale * w_scale + bias;
}

} // namespace reference
