#pragma once

// The definitions in double precision.

#include "ggml-ext-kernels/make_row.h"

#include <cmath>
#include <vector>

namespace reference {

inline std::vector<double> make_row(const ggml_ext_cpu_row & row, int64_t n) {
    const bool is_norm = row.kind == GGML_EXT_CPU_ROW_NORM || row.kind == GGML_EXT_CPU_ROW_RMS_NORM;
    double     mean = 0, squares = 0;
    for (int64_t i = 0; i < n && row.kind == GGML_EXT_CPU_ROW_NORM; i++) {
        mean += row.x[i] / static_cast<double>(n);
    }
    for (int64_t i = 0; i < n; i++) {
        squares += (row.x[i] - mean) * (row.x[i] - mean) / static_cast<double>(n);
    }
    std::vector<double> out;
    for (int64_t i = 0; i < n; i++) {
        const double x = row.x[i];
        double       v = 0;
        switch (row.kind) {
            case GGML_EXT_CPU_ROW_SCALE:       v = x * row.factor + row.offset; break;
            case GGML_EXT_CPU_ROW_GELU_ERF:    v = 0.5 * x * std::erfc(-x / std::sqrt(2.0)); break;
            case GGML_EXT_CPU_ROW_SILU_MUL:    v = x / (1 + std::exp(-x)) * row.y[i]; break;
            case GGML_EXT_CPU_ROW_SIGMOID_MUL: v = 1 / (1 + std::exp(-x)) * row.y[i]; break;
            default:                           v = (x - mean) / std::sqrt(squares + row.eps); break;
        }
        if (is_norm) {
            v *= row.weight ? row.weight[i] : 1.0;
            v += row.modulation ? v * row.modulation[i] : 0.0;
            v += row.shift ? row.shift[i] : 0.0;
        }
        out.push_back(v);
    }
    return out;
}

} // namespace reference
