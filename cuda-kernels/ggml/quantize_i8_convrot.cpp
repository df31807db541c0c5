// I8-2: sd.quantize_i8_convrot.v1(X), rows of F32 rotated and quantised to the packed tensor. Groups of 1 and 256; others are the CPU's.

#include "library.h"

namespace cuda_ops {

namespace {

int32_t group_of(const void * attrs) {
    ggml_ext_quantize_i8_convrot_attrs a;
    std::memcpy(&a, attrs, sizeof(a));
    return a.group;
}

bool is_valid(int32_t n_src, const ggml_ext_tensor * const * src, int32_t group) {
    if (n_src != 1) {
        return refuse("%d sources, expected 1: X", n_src);
    }
    const ggml_ext_tensor & x = *src[0];
    if (group != 1 && group != 4 && group != 16 && group != 64 && group != 256) {
        return refuse("the group is %d, expected 1, 4, 16, 64 or 256", group);
    }
    if (!is_f32(&x) || row_stride(x) == 0) {
        return refuse("X has type %d, expected F32 with evenly spaced rows of successive elements", x.type);
    }
    return x.ne[0] % group == 0 || refuse("X has %lld features, expected a multiple of the group %d", static_cast<long long>(x.ne[0]), group);
}

int infer(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void *) {
    if (!is_valid(n_src, src, group_of(attrs))) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type  = TYPE_I8;
    out->ne[0] = static_cast<int64_t>(ggml_ext_cuda_convrot_size(rows(*src[0]), src[0]->ne[0]));
    out->ne[1] = out->ne[2] = out->ne[3] = 1;
    return GGML_EXT_STATUS_SUCCESS;
}

int32_t supports(const ggml_ext_node * node, void *) {
    const int32_t group = group_of(node->attrs);
    if (!is_valid(node->n_src, node->src, group)) {
        return 0;
    }
    return group == 1 || group == 256 || refuse("the group is %d, expected 1 or 256 on CUDA", group);
}

size_t workspace_size(const ggml_ext_tensor & x) { return ggml_ext_cuda_quantize_i8_workspace_size(rows(x), x.ne[0]); }

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void *) {
    out->workspace_size = workspace_size(*params->nodes[0]->src[0]);
    return GGML_EXT_STATUS_SUCCESS;
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node &   node = *params->nodes[0];
    const ggml_ext_tensor & x    = *node.src[0];
    if (overlap(*node.dst, x)) {
        refuse("the output shares memory with X");
        return GGML_EXT_STATUS_UNSUPPORTED;
    }
    void * stream = nullptr;
    if (const int status = stream_of(*params, *static_cast<const device *>(user_data), stream); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    auto *                         out = static_cast<char *>(node.dst->data);
    ggml_ext_cuda_quantize_i8_args args{};
    args.M           = rows(x);
    args.K           = x.ne[0];
    args.group       = group_of(node.attrs);
    args.padded_rows = ggml_ext_cuda_convrot_padded_rows(args.M);
    args.x           = floats(&x);
    args.x_stride    = row_stride(x);
    args.q           = reinterpret_cast<int8_t *>(out);
    args.q_stride    = static_cast<size_t>(args.K);
    args.scale       = reinterpret_cast<float *>(out + ggml_ext_cuda_convrot_scale_offset(args.M, args.K));
    return status_of(ggml_ext_cuda_quantize_i8(&args, params->workspace, params->workspace_size, stream));
}

} // namespace

void register_quantize_i8_convrot(registrar & r) {
    r.op(GGML_EXT_OP_QUANTIZE_I8_CONVROT, sizeof(ggml_ext_quantize_i8_convrot_attrs), infer);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.quantize_i8_convrot";
    desc.op       = GGML_EXT_OP_QUANTIZE_I8_CONVROT;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.execute  = execute;
    r.kernel(desc);
}

} // namespace cuda_ops
