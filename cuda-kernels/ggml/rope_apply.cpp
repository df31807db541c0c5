// ROPE-1: sd.rope_apply.v1(x, pe), rotation by given matrices.

#include "rotation.h"

namespace cuda_ops {

namespace {

int infer(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void *) {
    rotation r;
    if (!read_rope_apply(n_src, src, attrs, r)) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type = TYPE_F32;
    std::memcpy(out->ne, src[0]->ne, sizeof(out->ne));
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

void register_rope_apply(registrar & r) {
    r.op(GGML_EXT_OP_ROPE_APPLY, sizeof(ggml_ext_rope_apply_attrs), infer);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.rope_apply";
    desc.op       = GGML_EXT_OP_ROPE_APPLY;
    desc.supports = [](const ggml_ext_node * node, void *) -> int32_t {
        rotation found;
        return read_rope_apply(node->n_src, node->src, node->attrs, found) ? 1 : 0;
    };
    desc.execute = execute_rotation;
    r.kernel(desc);
}

} // namespace cuda_ops
