// ROPE-3: RMS_NORM -> MUL(weight [d_head]) -> ROPE or sd.rope_apply.v1 [-> SCALE -> CPY to F16], in one pass over the rows.

#include "rotation.h"

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
    const ggml_ext_node * norm = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * mul  = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_node * rope = ggml_ext_graph_node(graph, first + 2);
    rotation              r;
    if (mul == nullptr || rope == nullptr || !reads(mul, "MUL", *norm->dst) || source(*rope, 0) == nullptr ||
        source(*rope, 0)->tensor != mul->dst->tensor) {
        return refuse("no RMS_NORM -> MUL -> rotation");
    }
    if (!read_rotation(*rope, r)) {
        return 0;
    }
    const ggml_ext_tensor & x = *norm->src[0];
    if (!is_f32(&x) || !dense_rows(x)) {
        return refuse("the input is not F32 with dense rows");
    }
    if (!is_vector_weight(source(*mul, 1), x.ne[0])) {
        return refuse("the weight is no kept F32 vector of %lld elements", static_cast<long long>(x.ne[0]));
    }
    if (!(param_f32(*norm, 0) >= 0)) {
        return refuse("eps is %g", static_cast<double>(param_f32(*norm, 0)));
    }
    return has_scaled_copy(graph, first + 3, *rope->dst) ? 5 : 3;
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node * const * nodes = params->nodes;
    rotation                      r;
    if (!read_rotation(*nodes[2], r)) {
        return GGML_EXT_STATUS_FAILED;
    }
    r.args.norm   = 1;
    r.args.eps    = param_f32(*nodes[0], 0);
    r.args.weight = floats(nodes[1]->src[1]);
    set_input(*nodes[0]->src[0], r.args);
    if (params->n_nodes == 5) {
        r.args.scale   = param_f32(*nodes[3], 0);
        r.args.dst_f16 = 1;
    }
    return launch_rotation(*params, *static_cast<const device *>(user_data), r, *nodes[params->n_nodes - 1]->dst);
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
