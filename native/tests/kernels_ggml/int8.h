#pragma once
// Nodes of the INT8 operators, and the linear layer by its definition.

#include "ggml-ext-cpu-ops.h"
#include "kernels_ggml/fixture.h"

namespace ggml_ext::test {

inline ggml_tensor * linear(bench & b, std::vector<ggml_tensor *> src, int32_t sources, int32_t packed_rows = 0) {
    const ggml_ext_linear_i8_attrs attrs{sources, packed_rows};
    ggml_tensor *                  out = nullptr;
    ggml_ext_op_create(b.ctx, GGML_EXT_OP_LINEAR_I8, static_cast<int32_t>(src.size()), src.data(), &attrs, sizeof(attrs), &out);
    return out;
}

inline ggml_tensor * quantize(bench & b, ggml_tensor * x, int32_t group) {
    const ggml_ext_quantize_i8_convrot_attrs attrs{group};
    ggml_tensor *                            out = nullptr;
    ggml_ext_op_create(b.ctx, GGML_EXT_OP_QUANTIZE_I8_CONVROT, 1, &x, &attrs, sizeof(attrs), &out);
    return out;
}

// I8-1 as it is written: an integer sum, then float operations that are each rounded on their own
inline float scaled(int64_t sum, const float * x_scale, const float * w_scale, const float * bias) {
    volatile float y = static_cast<float>(sum);
    if (x_scale != nullptr) {
        y = y * *x_scale;
    }
    if (w_scale != nullptr) {
        y = y * *w_scale;
    }
    if (bias != nullptr) {
        y = y + *bias;
    }
    return y;
}

inline int64_t dot(const int8_t * a, const int8_t * b, int64_t n) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) {
        sum += static_cast<int64_t>(a[i]) * b[i];
    }
    return sum;
}

} // namespace ggml_ext::test
