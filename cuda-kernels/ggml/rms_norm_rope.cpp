// ROPE-3: RMS_NORM -> MUL(weight [d_head]) -> ROPE or sd.rope_apply.v1 [-> SCALE -> CPY to F16], in one pass over the rows.

#include "launch_rotation.h"

namespace cuda_ops {

namespace {

constexpr int32_t TYPE_F16 = 1;

bool reads(const ggml_ext_node * node, const char * op, const ggml_ext_tensor & from) {
    return is_op(node, op) && source(*node, 0) != nullptr && source(*node, 0)->tensor == from.tensor;
}

// Are nodes `at` and the next the scaling and the copy of `rotated`? The copy keeps the shape.
bool has_scaled_copy(const ggml_ext_graph * graph, int32_t at, const ggml_ext_tensor & rotated) {
    const ggml_ext_node * scale = ggml_ext_graph_node(graph, at);
    const ggml_ext_node * copy  = ggml_ext_graph_node(graph, at + 1);
    return scale != nullptr && copy != nullptr && reads(scale, "SCALE", rotated) && param_f32(*scale, 1) == 0.0f &&
           reads(copy, "CPY", *scale->dst) && copy->dst->type == TYPE_F16 && same_shape(*copy->dst, rotated) && copy->dst->nb[0] == 2 &&
           (copy->dst->nb[1] | copy->dst->nb[2] | copy->dst->nb[3]) % 2 == 0;
}

int32_t match(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    rotation r;
    if (!read_norm_rotation(graph, first, r) || !within_limit(r)) {
        return 0;
    }
    return has_scaled_copy(graph, first + 3, *ggml_ext_graph_node(graph, first + 2)->dst) ? 5 : 3;
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node * const * nodes       = params->nodes;
    const bool                    scaled_copy = params->n_nodes == 5;
    return launch_rotation(*params, *static_cast<const device *>(user_data), *nodes[2], nodes, *nodes[params->n_nodes - 1]->dst,
                           scaled_copy ? param_f32(*nodes[3], 0) : 1.0f, scaled_copy);
}

} // namespace

void register_rms_norm_rope(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name    = "cuda.rms_norm_rope";
    desc.op      = "RMS_NORM";
    desc.match   = match;
    desc.execute = execute;
    r.kernel(desc);
}

} // namespace cuda_ops
