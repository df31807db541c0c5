#pragma once

// What is rotated, in double precision.

#include "ggml-ext-cuda-kernels/convrot_fused.h"

#include <cmath>
#include <vector>

namespace reference {

inline std::vector<double>
convrot_source(const ggml_ext_cuda_convrot_fused_args & args, const float * a, const float * b, const float * weight) {
    double squares = 0;
    for (int64_t k = 0; k < args.K; k++) {
        squares += static_cast<double>(a[k]) * a[k];
    }
    const double        norm = std::sqrt(squares / static_cast<double>(args.K) + args.eps);
    std::vector<double> y;
    for (int64_t k = 0; k < args.K; k++) {
        const double v = a[k];
        switch (args.source) {
            case GGML_EXT_CUDA_CONVROT_SCALE:
                y.push_back(v * args.scale);
                break;
            case GGML_EXT_CUDA_CONVROT_RMS_NORM:
                y.push_back(v / norm * (weight ? weight[k] : 1.0));
                break;
            case GGML_EXT_CUDA_CONVROT_SWIGLU:
                y.push_back(v / (1 + std::exp(-v)) * b[k]);
                break;
            default:
                y.push_back(1 / (1 + std::exp(-v)) * b[k]);
                break;
        }
    }
    return y;
}

} // namespace reference
