#pragma once
// A rule for tests: SCALE -> ADD as one step. Its kernel first ruins the whole output, so that an input which shares storage with
// it, or was freed too early, shows as a wrong result.

#include "core/fixture.h"

#include <atomic>
#include <cmath>
#include <limits>

namespace ggml_ext::test {

struct scale_add_rule {
    std::atomic<int> runs{0};
    size_t           workspace = 0;
    int64_t          only_rows = 0; // match only graphs whose output has that many rows; 0: all
};

inline int32_t match_scale_add(const ggml_ext_graph * graph, int32_t first, void * user_data) {
    const auto &          rule  = *static_cast<scale_add_rule *>(user_data);
    const ggml_ext_node * scale = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * add   = ggml_ext_graph_node(graph, first + 1);
    if (add == nullptr || std::strcmp(add->op, "ADD") != 0 || add->src[0]->tensor != scale->dst->tensor) {
        ggml_ext_set_error("no ADD of the scaled tensor follows");
        return 0;
    }
    return rule.only_rows == 0 || add->dst->ne[1] == rule.only_rows ? 2 : 0;
}

inline int prepare_scale_add(const ggml_ext_prepare_params *, ggml_ext_prepared * out, void * user_data) {
    out->workspace_size = static_cast<scale_add_rule *>(user_data)->workspace;
    out->n_tasks        = 1;
    return GGML_EXT_STATUS_SUCCESS;
}

inline int run_scale_add(const ggml_ext_exec_params * p, int32_t, int32_t, int32_t, void * user_data) {
    const ggml_ext_node * scale = p->nodes[0];
    const ggml_ext_node * add   = p->nodes[1];
    const auto *          x     = static_cast<const float *>(scale->src[0]->data);
    const auto *          y     = static_cast<const float *>(add->src[1]->data);
    auto *                out   = static_cast<float *>(add->dst->data);
    float                 factor;
    std::memcpy(&factor, scale->op_params, sizeof(factor));
    const size_t n = add->dst->nbytes / sizeof(float);
    if (static_cast<const void *>(y) != out) { // an exact alias of what only the last node reads is allowed
        for (size_t i = 0; i < n; ++i) {
            out[i] = std::numeric_limits<float>::quiet_NaN();
        }
    }
    if (p->workspace_size > 0) {
        std::memset(p->workspace, 0xff, p->workspace_size);
    }
    for (size_t i = 0; i < n; ++i) {
        out[i] = x[i] * factor + y[i];
    }
    ++static_cast<scale_add_rule *>(user_data)->runs;
    return GGML_EXT_STATUS_SUCCESS;
}

inline int register_scale_add(registration & r, scale_add_rule & rule, const char * name = "test.scale_add") {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = "SCALE";
    desc.user_data   = &rule;
    desc.match       = match_scale_add;
    desc.prepare     = prepare_scale_add;
    desc.run         = run_scale_add;
    return ggml_ext_register_kernel(attached_cpu(), &desc, &r.handle);
}

// reasons of all refusals in the backend's most recent plan, one a line
inline std::string refusals(ggml_backend * backend) {
    ggml_ext_plan * plan = nullptr;
    REQUIRE_OK(ggml_ext_plan_copy(backend, 0, &plan));
    ggml_ext_plan_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_plan_get_info(plan, &info));
    std::string text;
    for (int i = 0; i < info.n_refusals; ++i) {
        ggml_ext_plan_refusal r{};
        r.struct_size = sizeof(r);
        REQUIRE_OK(ggml_ext_plan_get_refusal(plan, i, &r));
        text += std::string(r.kernel) + ": " + r.reason + "\n";
    }
    ggml_ext_plan_free(plan);
    return text;
}

inline ggml_ext_backend_stats stats_of(ggml_backend * backend) {
    ggml_ext_backend_stats s{};
    s.struct_size = sizeof(s);
    REQUIRE_OK(ggml_ext_get_backend_stats(backend, &s));
    return s;
}

} // namespace ggml_ext::test
