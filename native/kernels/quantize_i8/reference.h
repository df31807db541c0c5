#pragma once

// The rotation as a dense matrix, element by element from the definition, and the scale, in double.

#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

// Element (row, column) of the Kronecker power of H4 that has group rows.
inline double rotation(int64_t group, int64_t row, int64_t column) {
    static const double H4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
    double              value    = 1;
    for (; group > 1; group /= 4, row /= 4, column /= 4) {
        value *= 0.5 * H4[row % 4][column % 4];
    }
    return value;
}

inline std::vector<double> rotate(const float * x, int64_t k, int64_t group) {
    std::vector<double> y(static_cast<std::size_t>(k));
    for (int64_t i = 0; i < k; i++) {
        const int64_t first = i / group * group;
        for (int64_t j = 0; j < group; j++) {
            y[static_cast<std::size_t>(i)] += rotation(group, i - first, j) * x[first + j];
        }
    }
    return y;
}

inline double largest(const std::vector<double> & y) {
    double most = 0;
    for (double v : y) {
        most = std::fmax(most, std::fabs(v));
    }
    return most;
}

} // namespace reference
