// ROPE-3: RMS_NORM -> MUL(weight [d_head]) -> ROPE or sd.rope_apply.v1, in one pass over the rows.

#include "registrations.h"
#include "rotation.h"

namespace cpu_ops {

namespace {

int32_t match(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    const ggml_ext_node * norm = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * mul  = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_node * rope = ggml_ext_graph_node(graph, first + 2);
    rotation              r;
    if (!is_op(mul, "MUL") || source(*mul, 0)->tensor != norm->dst->tensor || rope == nullptr || source(*rope, 0) == nullptr ||
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
    return param_f32(*norm, 0) >= 0 ? 3 : refuse("eps is %g", static_cast<double>(param_f32(*norm, 0)));
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    return run_rotation(*params, params->nodes, ith, nth);
}

} // namespace

void register_rms_norm_rope(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name    = "cpu.rms_norm_rope";
    desc.op      = "RMS_NORM";
    desc.match   = match;
    desc.prepare = prepare_rotation;
    desc.run     = run;
    r.kernel(desc);
}

} // namespace cpu_ops
