// ROPE-1: sd.rope_apply.v1(x, pe), rotation by given matrices.

#include "ggml-ext-cpu-ops.h"
#include "registrations.h"
#include "rotation.h"
#include "run_rotation.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    rotation r;
    return read_rope_apply(node->n_src, node->src, node->attrs, r) ? 1 : 0;
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    return run_rotation(*params, nullptr, ith, nth);
}

} // namespace

void register_rope_apply(registrar & r) {
    r.op(GGML_EXT_OP_ROPE_APPLY, sizeof(ggml_ext_rope_apply_attrs), infer_rope_apply);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.rope_apply";
    desc.op       = GGML_EXT_OP_ROPE_APPLY;
    desc.supports = supports;
    desc.prepare  = prepare_rotation;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
