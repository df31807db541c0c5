// SOFT_MAX of contiguous F32, with a scale and an F32 mask. The output may take the input's place.

#include "ggml-ext-kernels/rows.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    const ggml_ext_tensor * x    = source(*node, 0);
    const ggml_ext_tensor * mask = source(*node, 1);
    if (!is_f32(x) || !is_f32(node->dst) || !contiguous(*x) || !contiguous(*node->dst) || !same_shape(*x, *node->dst)) {
        return refuse("input and output are not contiguous F32 of one shape");
    }
    if (source(*node, 2) != nullptr || param_f32(*node, 1) != 0) {
        return refuse("sinks and ALiBi (max_bias %g) are ggml's own", static_cast<double>(param_f32(*node, 1)));
    }
    if (mask == nullptr) {
        return 1;
    }
    if (!is_f32(mask) || !dense_rows(*mask)) {
        return refuse("the mask is not F32 with dense rows");
    }
    if (mask->ne[0] != x->ne[0] || mask->ne[1] < x->ne[1] || x->ne[2] % mask->ne[2] != 0 || x->ne[3] % mask->ne[3] != 0) {
        return refuse("the mask [%lld, %lld, %lld, %lld] does not fit", static_cast<long long>(mask->ne[0]),
                      static_cast<long long>(mask->ne[1]), static_cast<long long>(mask->ne[2]), static_cast<long long>(mask->ne[3]));
    }
    return 1;
}

// Planes of one mask each: whole batches where the mask is the same for all of ne2.
int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node &   node = *params->nodes[0];
    const ggml_ext_tensor & x    = *node.src[0];
    const ggml_ext_tensor * mask = source(node, 1);

    ggml_ext_cpu_softmax_args args{};
    args.n               = x.ne[0];
    args.x_stride        = static_cast<size_t>(x.ne[0]) * sizeof(float);
    args.dst_stride      = args.x_stride;
    args.scale           = param_f32(node, 0);
    const int64_t planes = mask == nullptr ? 1 : mask->ne[2] == 1 ? (mask->ne[3] == 1 ? 1 : x.ne[3])
                                                                  : x.ne[2] * x.ne[3];
    args.rows            = rows(x) / planes;
    for (int64_t plane = 0; plane < planes; ++plane) {
        args.x   = floats(&x) + plane * args.rows * x.ne[0];
        args.dst = static_cast<float *>(node.dst->data) + plane * args.rows * x.ne[0];
        if (mask != nullptr) {
            const int64_t i2 = mask->ne[2] == 1 ? 0 : plane % x.ne[2] % mask->ne[2];
            const int64_t i3 = (mask->ne[2] == 1 ? plane : plane / x.ne[2]) % mask->ne[3];
            args.mask        = reinterpret_cast<const float *>(static_cast<const char *>(mask->data) + static_cast<size_t>(i2) * mask->nb[2] +
                                                               static_cast<size_t>(i3) * mask->nb[3]);
            args.mask_stride = mask->nb[1];
            args.mask_rows   = x.ne[1];
        }
        if (const int status = ggml_ext_cpu_softmax(&args, ith, nth); status != GGML_EXT_CPU_OK) {
            return status_of(status);
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

void register_soft_max(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.soft_max";
    desc.op       = "SOFT_MAX";
    desc.supports = supports;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
