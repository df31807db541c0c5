#pragma once

// A packed ConvRot tensor from the device, compared with what a row should be.

#include "device.h"
#include "rotation_reference.h"

namespace test {

struct packed_rows {
    int64_t           M, K;
    std::vector<char> data;

    const int8_t * row(int64_t m) const { return reinterpret_cast<const int8_t *>(data.data()) + m * K; }

    float scale(int64_t m) const {
        float s;
        std::memcpy(&s, data.data() + ggml_ext_cuda_convrot_scale_offset(M, K) + static_cast<std::size_t>(m) * 4, 4);
        return s;
    }

    bool padding_is_zero() const {
        for (int64_t m = M; m < ggml_ext_cuda_convrot_padded_rows(M); m++) {
            for (int64_t k = 0; k < K; k++) {
                if (row(m)[k] != 0) {
                    return false;
                }
            }
        }
        return true;
    }
};

// How far a row may be from the reference: its scale relatively, its values in steps.
struct row_tolerance {
    double scale = 1e-6, near_tie = 2e-4;
};

// Equal to y quantised, but where a value is so near a tie that float rounding may decide. False where not.
inline bool row_equals(const packed_rows & p, int64_t m, const std::vector<double> & y, row_tolerance t = {}) {
    const double scale = reference::largest(y) / 127;
    if (!(std::fabs(p.scale(m) - scale) <= t.scale * scale)) {
        return false;
    }
    int64_t near_ties = 0;
    for (int64_t k = 0; k < p.K; k++) {
        const double v    = y[static_cast<std::size_t>(k)] / scale;
        const bool   near = std::fabs(std::fabs(v - std::floor(v)) - 0.5) < t.near_tie;
        near_ties += near;
        if (near ? std::fabs(p.row(m)[k] - v) > 0.5 + t.near_tie : p.row(m)[k] != std::nearbyint(v)) {
            return false;
        }
    }
    return near_ties < p.K / 50 + 5; // else the comparison says nothing
}

} // namespace test
