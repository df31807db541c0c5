// I8-2: sd.quantize_i8_convrot.v1(X), rows of F32 rotated and quantised to the packed tensor.

#include "ggml-ext-cpu-ops.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

int32_t group_of(const void * attrs) {
    ggml_ext_quantize_i8_convrot_attrs a;
    std::memcpy(&a, attrs, sizeof(a));
    return a.group;
}

bool accepts(int32_t n_src, const ggml_ext_tensor * const * src, int32_t group) {
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

int infer(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * /* user_data */) {
    if (!accepts(n_src, src, group_of(attrs))) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type  = TYPE_I8;
    out->ne[0] = static_cast<int64_t>(ggml_ext_cpu_convrot_size(rows(*src[0]), src[0]->ne[0]));
    out->ne[1] = out->ne[2] = out->ne[3] = 1;
    return GGML_EXT_STATUS_SUCCESS;
}

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    return accepts(node->n_src, node->src, group_of(node->attrs)) ? 1 : 0;
}

size_t scratch_size(const ggml_ext_node & node) {
    return ggml_ext_cpu_quantize_i8_scratch_size(node.src[0]->ne[0], group_of(node.attrs));
}

// An output over the input is made in the workspace first.
int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    const ggml_ext_node & node = *params->nodes[0];
    out->n_phases              = 2;
    want_workspace(*out, static_cast<size_t>(node.dst->ne[0]), scratch_size(node));
    return GGML_EXT_STATUS_SUCCESS;
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node &   node    = *params->nodes[0];
    const ggml_ext_tensor & x       = *node.src[0];
    const auto              size    = static_cast<size_t>(node.dst->ne[0]);
    const bool              shared  = overlap(*node.dst, x);
    auto *                  out     = static_cast<char *>(shared ? params->workspace : node.dst->data);
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
    args.group       = group_of(node.attrs);
    args.padded_rows = ggml_ext_cpu_convrot_padded_rows(args.M);
    args.x           = floats(&x);
    args.x_stride    = row_stride(x);
    args.q           = reinterpret_cast<int8_t *>(out);
    args.q_stride    = static_cast<size_t>(args.K);
    args.scale       = reinterpret_cast<float *>(out + ggml_ext_cpu_convrot_scale_offset(args.M, args.K));
    return status_of(ggml_ext_cpu_quantize_i8(&args, scratch_of(*params, size, scratch_size(node), ith), scratch_size(node), ith, nth));
}

} // namespace

void register_quantize_i8_convrot(registrar & r) {
    ggml_ext_op_desc op{};
    op.struct_size = sizeof(op);
    op.name        = GGML_EXT_OP_QUANTIZE_I8_CONVROT;
    op.attrs_size  = sizeof(ggml_ext_quantize_i8_convrot_attrs);
    op.infer       = infer;
    r.op(op);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.quantize_i8_convrot";
    desc.op       = GGML_EXT_OP_QUANTIZE_I8_CONVROT;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
