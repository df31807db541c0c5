#pragma once

// Error of a row of int8 with its scale against double precision, in steps: half a step is the rounding itself.

#include "bench.h"
#include "rotation_reference.h"

namespace bench {

inline double steps_off(const std::vector<double> & y, const int8_t * q) {
    const double scale = reference::largest(y) / 127;
    double       error = 0;
    for (std::size_t k = 0; k < y.size(); k++) {
        error = std::fmax(error, std::fabs(q[k] - y[k] / scale));
    }
    return error;
}

inline std::vector<int8_t> bytes(const char * from, std::size_t n) {
    std::vector<int8_t> v(n);
    check(cudaMemcpy(v.data(), from, n, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return v;
}

} // namespace bench
