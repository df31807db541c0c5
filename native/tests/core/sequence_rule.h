#pragma once
// A rule for tests that matches a sequence of operations and computes it by ggml itself (differential/random_kernel.h).

#include "core/scale_add.h"
#include "differential/random_kernel.h"
#include "support/second_device.h"

namespace ggml_ext::test {

struct sequence_rule {
    std::vector<const char *> ops;
    bool                      through_workspace = false;
    bool                      wrong             = false; // computes nothing but noise
    int                       runs              = 0;
    registration              r;
};

// made before the CPU device is attached
inline ggml_backend * worker() {
    static ggml_backend * instance = new_native_cpu_backend(1);
    return instance;
}

inline int32_t match_sequence(const ggml_ext_graph * graph, int32_t first, void * user_data) {
    const auto & ops = static_cast<sequence_rule *>(user_data)->ops;
    for (size_t i = 0; i < ops.size(); ++i) {
        const ggml_ext_node * node = ggml_ext_graph_node(graph, first + static_cast<int>(i));
        if (node == nullptr || std::strcmp(node->op, ops[i]) != 0) {
            return 0;
        }
    }
    return static_cast<int32_t>(ops.size());
}

inline int prepare_sequence(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * user_data) {
    auto * copy         = new group_copy(*params, static_cast<sequence_rule *>(user_data)->through_workspace);
    out->state          = copy;
    out->workspace_size = copy->workspace_size();
    out->n_tasks        = 1;
    return GGML_EXT_STATUS_SUCCESS;
}

inline int run_sequence(const ggml_ext_exec_params * params, int32_t, int32_t, int32_t, void * user_data) {
    auto & rule = *static_cast<sequence_rule *>(user_data);
    auto & copy = *static_cast<group_copy *>(params->state);
    ++rule.runs;
    if (rule.wrong) {
        const ggml_ext_tensor & out = *params->nodes[params->n_nodes - 1]->dst;
        std::memset(out.data, 0x3f, out.nbytes);
        return GGML_EXT_STATUS_SUCCESS;
    }
    const int status = copy.compute(*params, worker());
    if (rule.through_workspace) {
        copy.copy_out(*params, 0, 1);
    }
    return status;
}

inline void add(sequence_rule & rule, uint32_t flags = 0, const char * name = "test.sequence", ggml_backend_device * device = nullptr) {
    worker();
    ggml_backend_device * cpu = attached_cpu();
    ggml_ext_kernel_desc  desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = rule.ops.front();
    desc.user_data   = &rule;
    desc.match       = match_sequence;
    desc.prepare     = prepare_sequence;
    desc.run         = run_sequence;
    desc.destroy     = [](void * state, void *) { delete static_cast<group_copy *>(state); };
    REQUIRE_OK(ggml_ext_register_kernel_ex(device != nullptr ? device : cpu, &desc, flags, &rule.r.handle));
}

} // namespace ggml_ext::test
