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
    ggml_ext_op_desc op{};
    op.struct_size = sizeof(op);
    op.name        = GGML_EXT_OP_ROPE_APPLY;
    op.attrs_size  = sizeof(ggml_ext_rope_apply_attrs);
    op.infer       = infer_rope_apply;
    r.op(op);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.rope_apply";
    desc.op       = GGML_EXT_OP_ROPE_APPLY;
    desc.supports = supports;
    desc.prepare  = prepare_rotation;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
