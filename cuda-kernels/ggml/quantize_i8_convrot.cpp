// I8-2: sd.quantize_i8_convrot.v1(X), rows of F32 rotated and quantised to the packed tensor. Groups of 1 and 256; others are the CPU's.

#include "convrot.h"
#include "library.h"

size_t cpu_ops::convrot_size(int64_t M, int64_t K) { return ggml_ext_cuda_convrot_size(M, K); }

namespace cuda_ops {

bool fits_grid(const ggml_ext_tensor & x) {
    return (x.ne[0] <= LONGEST_ROW && ggml_ext_cuda_convrot_padded_rows(rows(x)) <= MOST_BLOCKS) ||
           refuse("X has %lld rows of %lld features, more than a grid holds", static_cast<long long>(rows(x)), static_cast<long long>(x.ne[0]));
}

namespace {

int32_t supports(const ggml_ext_node * node, void *) {
    const int32_t group = convrot_group(node->attrs);
    if (!accepts_convrot(node->n_src, node->src, group)) {
        return 0;
    }
    if (group != 1 && group != 256) {
        return refuse("the group is %d, expected 1 or 256 on CUDA", group);
    }
    return fits_grid(*node->src[0]);
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
    args.group       = convrot_group(node.attrs);
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
    r.op(GGML_EXT_OP_QUANTIZE_I8_CONVROT, sizeof(ggml_ext_quantize_i8_convrot_attrs), infer_convrot);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.quantize_i8_convrot";
    desc.op       = GGML_EXT_OP_QUANTIZE_I8_CONVROT;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.execute  = execute;
    r.kernel(desc);
}

} // namespace cuda_ops
