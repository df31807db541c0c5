// ROPE-1: sd.rope_apply.v1(x, pe), rotation by given matrices.

#include "launch_rotation.h"

namespace cuda_ops {

void register_rope_apply(registrar & r) {
    r.op(GGML_EXT_OP_ROPE_APPLY, sizeof(ggml_ext_rope_apply_attrs), infer_rope_apply);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.rope_apply";
    desc.op       = GGML_EXT_OP_ROPE_APPLY;
    desc.supports = [](const ggml_ext_node * node, void *) -> int32_t {
        rotation found;
        return read_rope_apply(node->n_src, node->src, node->attrs, found) && within_limit(found) ? 1 : 0;
    };
    desc.execute = execute_rotation;
    r.kernel(desc);
}

} // namespace cuda_ops
