#pragma once
// A custom operator for tests: swish(x) = x / (1 + exp(-beta x)), beta an attribute.

#include "core/fixture.h"

#include <atomic>
#include <cmath>

namespace ggml_ext::test {

inline int infer_like_source(int32_t n_src, const ggml_ext_tensor * const * src, const void *, ggml_ext_output * out, void *) {
    if (n_src != 1) {
        ggml_ext_set_error("swish takes one source");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type = src[0]->type;
    std::memcpy(out->ne, src[0]->ne, sizeof(out->ne));
    return GGML_EXT_STATUS_SUCCESS;
}

inline int register_swish(registration & r, const char * name = "test.swish.v1") {
    const ggml_ext_op_desc desc{sizeof(desc), name, sizeof(float), infer_like_source, nullptr, nullptr};
    return ggml_ext_register_op(&desc, &r.handle);
}

inline ggml_tensor * swish(bench & b, ggml_tensor * x, float beta, const char * name = "test.swish.v1") {
    ggml_tensor * out = nullptr;
    REQUIRE_OK(ggml_ext_op_create(b.ctx, name, 1, &x, &beta, sizeof(beta), &out));
    return out;
}

inline double swish_exact(double x, double beta) {
    return x / (1.0 + std::exp(-beta * x));
}

struct swish_counts {
    std::atomic<int> runs{0}, prepared{0}, destroyed{0};
    std::atomic<int> largest_nth{0};
};

inline int32_t supports_f32(const ggml_ext_node * node, void *) {
    return node->dst->type == 0 ? 1 : 0;
}

inline int run_swish(const ggml_ext_exec_params * params, int32_t, int32_t ith, int32_t nth, void * user_data) {
    const ggml_ext_node * node = params->nodes[0];
    const auto *          x    = static_cast<const float *>(node->src[0]->data);
    auto *                y    = static_cast<float *>(node->dst->data);
    float                 beta;
    std::memcpy(&beta, node->attrs, sizeof(beta));
    const int64_t n = static_cast<int64_t>(node->dst->nbytes / sizeof(float));
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; ++i) {
        y[i] = x[i] / (1.0f + std::exp(-beta * x[i]));
    }
    if (user_data != nullptr) {
        auto & counts = *static_cast<swish_counts *>(user_data);
        ++counts.runs;
        int seen = counts.largest_nth;
        while (seen < nth && !counts.largest_nth.compare_exchange_weak(seen, nth)) {
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

inline ggml_ext_kernel_desc swish_kernel(swish_counts * counts, const char * name = "test.swish.cpu") {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = "test.swish.v1";
    desc.user_data   = counts;
    desc.supports    = supports_f32;
    desc.run         = run_swish;
    return desc;
}

inline void check_swish(const std::vector<float> & x, const std::vector<float> & y, double beta) {
    REQUIRE(x.size() == y.size());
    for (size_t i = 0; i < x.size(); ++i) {
        CHECK(y[i] == doctest::Approx(swish_exact(x[i], beta)).epsilon(1e-6));
    }
}

} // namespace ggml_ext::test
