// I8-2: sd.quantize_i8_convrot.v1(X), rows of F32 rotated and quantised to the packed tensor.

#include "convrot.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    return accepts_convrot(node->n_src, node->src, convrot_group(node->attrs)) ? 1 : 0;
}

size_t scratch_size(const ggml_ext_node & node) {
    return ggml_ext_cpu_quantize_i8_scratch_size(node.src[0]->ne[0], convrot_group(node.attrs));
}

// An output over the input is made in the workspace first.
int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    const ggml_ext_node & node = *params->nodes[0];
    out->n_phases              = 2;
    want_workspace(*out, static_cast<size_t>(node.dst->ne[0]), scratch_size(node));
    return GGML_EXT_STATUS_SUCCESS;
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node &   node   = *params->nodes[0];
    const ggml_ext_tensor & x      = *node.src[0];
    const auto              size   = static_cast<size_t>(node.dst->ne[0]);
    const bool              shared = overlap(*node.dst, x);
    auto *                  out    = static_cast<char *>(shared ? params->workspace : node.dst->data);
    if (phase == 1) {
        if (shared) {
            const size_t begin = size * static_cast<size_t>(ith) / static_cast<size_t>(nth);
            const size_t end   = size * static_cast<size_t>(ith + 1) / static_cast<size_t>(nth);
            std::memcpy(static_cast<char *>(node.dst->data) + begin, out + begin, end - begin);
        }
        return GGML_EXT_STATUS_SUCCESS;
    }
    ggml_ext_cpu_quantize_i8_args args{};
    args.M           = rows(x);
    args.K           = x.ne[0];
    args.group       = convrot_group(node.attrs);
    args.padded_rows = ggml_ext_cpu_convrot_padded_rows(args.M);
    args.x           = floats(&x);
    args.x_stride    = row_stride(x);
    args.q           = reinterpret_cast<int8_t *>(out);
    args.q_stride    = static_cast<size_t>(args.K);
    args.scale       = reinterpret_cast<float *>(out + ggml_ext_cpu_convrot_scale_offset(args.M, args.K));
    return status_of(ggml_ext_cpu_quantize_i8(&args, scratch_of(*params, size, scratch_size(node), ith), scratch_size(node), ith, nth));
}

} // namespace

size_t convrot_size(int64_t M, int64_t K) {
    return ggml_ext_cpu_convrot_size(M, K);
}

void register_quantize_i8_convrot(registrar & r) {
    r.op(GGML_EXT_OP_QUANTIZE_I8_CONVROT, sizeof(ggml_ext_quantize_i8_convrot_attrs), infer_convrot);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.quantize_i8_convrot";
    desc.op       = GGML_EXT_OP_QUANTIZE_I8_CONVROT;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
