// ROPE-1: sd.rope_apply.v1(x, pe), rotation by given matrices.

#include "ggml-ext-cpu-ops.h"
#include "registrations.h"
#include "rotation.h"

namespace cpu_ops {

namespace {

int infer(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * /* user_data */) {
    rotation r;
    if (!read_rope_apply(n_src, src, attrs, r)) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type = TYPE_F32;
    std::memcpy(out->ne, src[0]->ne, sizeof(out->ne));
    return GGML_EXT_STATUS_SUCCESS;
}

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
    op.infer       = infer;
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
