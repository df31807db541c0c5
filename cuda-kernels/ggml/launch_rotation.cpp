#include "launch_rotation.h"

namespace cuda_ops {

bool within_limit(const rotation & r) {
    if (r.d_rot > GGML_EXT_CUDA_ROPE_MAX_D_ROT) {
        return refuse("%lld features are to be rotated, expected at most %d", static_cast<long long>(r.d_rot), GGML_EXT_CUDA_ROPE_MAX_D_ROT);
    }
    const int64_t * ne = r.x->ne;
    return (ne[0] <= LONGEST_ROW && ne[2] <= MOST_BLOCKS / ne[3]) ||
           refuse("%lld features and %lld x %lld positions are more than a grid holds", static_cast<long long>(ne[0]), static_cast<long long>(ne[2]),
                  static_cast<long long>(ne[3]));
}

int launch_rotation(const ggml_ext_exec_params & params, const device & d, const ggml_ext_node & node, const ggml_ext_node * const * norm,
                    const ggml_ext_tensor & dst, float scale, bool dst_f16) {
    rotation r;
    if (!read_rotation(node, r)) {
        return GGML_EXT_STATUS_FAILED;
    }
    void * stream = nullptr;
    if (const int status = stream_of(params, d, stream); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    ggml_ext_cuda_rope_args   args{};
    ggml_ext_cuda_rope_angles angles{};
    set_args(r, dst, args, angles);
    args.pairs   = r.split_half ? GGML_EXT_CUDA_ROPE_SPLIT_HALF : GGML_EXT_CUDA_ROPE_INTERLEAVED;
    args.scale   = scale;
    args.dst_f16 = dst_f16 ? 1 : 0;
    if (norm != nullptr) {
        set_norm(*norm[0], *norm[1], args);
    }
    return status_of(ggml_ext_cuda_rope(&args, stream));
}

int execute_rotation(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node & node = *params->nodes[0];
    return launch_rotation(*params, *static_cast<const device *>(user_data), node, nullptr, *node.dst, 1.0f, false);
}

} // namespace cuda_ops
