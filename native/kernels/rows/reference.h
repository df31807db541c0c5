#pragma once

// The definitions in double precision.

#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

inline std::vector<double>
layer_norm(const std::vector<double> & y, const float * weight, const float * bias, double eps) {
    double mean = 0, variance = 0;
    for (double v : y) {
        mean += v / static_cast<double>(y.size());
    }
    for (double v : y) {
        variance += (v - mean) * (v - mean) / static_cast<double>(y.size());
    }
    std::vector<double> out;
    for (std::size_t i = 0; i < y.size(); i++) {
        out.push_back((y[i] - mean) / std::sqrt(variance + eps) * (weight ? weight[i] : 1.0) + (bias ? bias[i] : 0.0));
    }
    return out;
}

inline std::vector<double> softmax(const std::vector<double> & y) {
    double most = -INFINITY, total = 0;
    for (double v : y) {
        most = std::fmax(most, v);
    }
    std::vector<double> out;
    for (double v : y) {
        out.push_back(std::exp(v - most));
        total += out.back();
    }
    for (double & v : out) {
        v /= total;
    }
    return out;
}

} // namespace reference
