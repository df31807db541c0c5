#include "run_rotation.h"

#include "ggml-ext-kernels/rope.h"
#include "rotation.h"
#include "threads.h"

namespace cpu_ops {

int prepare_rotation(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    want_workspace(*out, 0, ggml_ext_cpu_rope_scratch_size(params->nodes[params->n_nodes - 1]->dst->ne[0]));
    return GGML_EXT_STATUS_SUCCESS;
}

int run_rotation(const ggml_ext_exec_params & params, const ggml_ext_node * const * norm, int32_t ith, int32_t nth) {
    const ggml_ext_node & node = *params.nodes[params.n_nodes - 1];
    rotation              r;
    if (!read_rotation(node, r)) {
        return GGML_EXT_STATUS_FAILED;
    }
    ggml_ext_cpu_rope_args   args{};
    ggml_ext_cpu_rope_angles angles{};
    set_args(r, *node.dst, args, angles);
    args.pairs = r.split_half ? GGML_EXT_CPU_ROPE_SPLIT_HALF : GGML_EXT_CPU_ROPE_INTERLEAVED;
    if (norm != nullptr) {
        set_norm(*norm[0], *norm[1], args);
    }
    const size_t each = ggml_ext_cpu_rope_scratch_size(node.dst->ne[0]);
    return status_of(ggml_ext_cpu_rope(&args, scratch_of(params, 0, each, ith), each, ith, nth));
}

} // namespace cpu_ops
