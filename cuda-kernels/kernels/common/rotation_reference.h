#pragma once

// The rotation as a dense matrix, element by element from the definition, in double precision.

#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

// Element (row, column) of the Kronecker power of H4 that has `group` rows.
inline double rotation_element(int64_t group, int64_t row, int64_t column) {
    static const double H4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
    double              value    = 1;
    for (; group > 1; group /= 4, row /= 4, column /= 4) {
        value *= 0.5 * H4[row % 4][column % 4];
    }
    return value;
}

inline std::vector<double> rotate_groups(const std::vector<double> & x, int64_t group) {
    if (group == 1) {
        return x;
    }
    std::vector<double> matrix;
    for (int64_t i = 0; i < group * group; i++) {
        matrix.push_back(rotation_element(group, i / group, i % group));
    }
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); i++) {
        const auto     g     = static_cast<std::size_t>(group);
        const double * row   = &matrix[i % g * g];
        const double * first = &x[i / g * g];
        for (std::size_t j = 0; j < g; j++) {
            y[i] += row[j] * first[j];
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
