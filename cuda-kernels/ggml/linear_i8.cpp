// I8-1, I8-3: sd.linear_i8.v1 through cuBLAS: [quantise X,] product in int32 where the output will be, rescale in place.

#include "blas.h"
#include "library.h"
#include "linear.h"

namespace cuda_ops {

namespace {

constexpr int     TURING   = 75;
constexpr int64_t MAX_SIDE = 0x7fffffff;

size_t aligned(size_t bytes) { return (bytes + 127) / 128 * 128; }

int32_t supports(const ggml_ext_node * node, void * user_data) {
    const auto & d = *static_cast<const device *>(user_data);
    linear       l;
    if (!read_linear(node->n_src, node->src, node->attrs, l)) {
        return 0;
    }
    if (d.capability < TURING) {
        return refuse("the GPU's compute capability is %d.%d, expected 7.5 or higher", d.capability / 10, d.capability % 10);
    }
    if (!has_blas()) {
        return refuse("cuBLAS cannot be loaded (libcublas.so.13, .12, .11)");
    }
    const auto w_stride = static_cast<int64_t>(l.w->ne[1] == 1 ? static_cast<size_t>(l.K) : l.w->nb[1]);
    const auto x_stride = l.packed || l.x->type == TYPE_F32 ? l.K : static_cast<int64_t>(row_stride(*l.x));
    if (l.N % 4 != 0 || l.K % 4 != 0 || w_stride % 4 != 0 || x_stride % 4 != 0) {
        return refuse("N is %lld, K %lld, and rows of W and X are %lld and %lld bytes apart, expected multiples of 4", static_cast<long long>(l.N),
                      static_cast<long long>(l.K), static_cast<long long>(w_stride), static_cast<long long>(x_stride));
    }
    if (!is_aligned(*l.w, 4) || (l.x->type == TYPE_I8 && !is_aligned(*l.x, 4))) {
        return refuse("W or X does not begin at a multiple of 4 bytes: a CONT of it does");
    }
    return (l.M <= MAX_SIDE && l.N <= MAX_SIDE && w_stride <= MAX_SIDE && x_stride <= MAX_SIDE) ||
           refuse("a side or a stride is above %lld", static_cast<long long>(MAX_SIDE));
}

// The workspace for an X in F32: rows of int8, their scales, what quantising needs.
struct layout {
    size_t scales, scratch, scratch_size, all;

    explicit layout(const linear & l) {
        scales       = aligned(static_cast<size_t>(l.M * l.K));
        scratch      = scales + aligned(static_cast<size_t>(l.M) * sizeof(float));
        scratch_size = ggml_ext_cuda_quantize_i8_workspace_size(l.M, l.K);
        all          = scratch + scratch_size;
    }
};

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void *) {
    const ggml_ext_node & node = *params->nodes[0];
    linear                l;
    if (!read_linear(node.n_src, node.src, node.attrs, l)) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->workspace_size = l.x->type == TYPE_F32 ? layout(l).all : 0;
    return GGML_EXT_STATUS_SUCCESS;
}

int quantize(const linear & l, char * workspace, void * stream) {
    const layout                   place(l);
    ggml_ext_cuda_quantize_i8_args args{};
    args.M           = l.M;
    args.K           = l.K;
    args.group       = 1;
    args.padded_rows = l.M;
    args.x           = floats(l.x);
    args.x_stride    = row_stride(*l.x);
    args.q           = reinterpret_cast<int8_t *>(workspace);
    args.q_stride    = static_cast<size_t>(l.K);
    args.scale       = reinterpret_cast<float *>(workspace + place.scales);
    return status_of(ggml_ext_cuda_quantize_i8(&args, workspace + place.scratch, place.scratch_size, stream));
}

int multiply(const ggml_ext_exec_params & params, const device & d, const linear & l, const int8_t * x, int64_t x_stride) {
    void * handle = nullptr;
    if (const int status = d.blas(params.backend, &handle); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const auto * w        = static_cast<const int8_t *>(l.w->data);
    const auto   w_stride = l.N == 1 ? l.K : static_cast<int64_t>(l.w->nb[1]);
    auto *       sum      = static_cast<int32_t *>(params.nodes[0]->dst->data);
    if (const int error = multiply_i8(handle, l.M, l.N, l.K, x, x_stride, w, w_stride, sum); error != 0) {
        refuse("cublasGemmEx of %lld x %lld x %lld in int8 returned %d", static_cast<long long>(l.M), static_cast<long long>(l.N),
               static_cast<long long>(l.K), error);
        return GGML_EXT_STATUS_FAILED;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int rescale(const linear & l, const ggml_ext_tensor & dst, const float * x_scale, int64_t x_scales, void * stream) {
    ggml_ext_cuda_rescale_i8_args args{};
    args.M          = l.M;
    args.N          = l.N;
    args.sum        = static_cast<const int32_t *>(dst.data);
    args.sum_stride = static_cast<size_t>(l.N) * sizeof(float);
    args.x_scale    = x_scale;
    args.x_scales   = x_scales;
    args.w_scale    = floats(l.w_scale);
    args.w_scales   = l.w_scale != nullptr ? elements(*l.w_scale) : l.N;
    args.bias       = floats(l.bias);
    args.dst        = static_cast<float *>(dst.data);
    args.dst_stride = args.sum_stride;
    return status_of(ggml_ext_cuda_rescale_i8(&args, stream));
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const auto &            d    = *static_cast<const device *>(user_data);
    const ggml_ext_node &   node = *params->nodes[0];
    const ggml_ext_tensor & dst  = *node.dst;
    linear                  l;
    if (!read_linear(node.n_src, node.src, node.attrs, l)) {
        return GGML_EXT_STATUS_FAILED;
    }
    for (const ggml_ext_tensor * t : {l.w, l.x, l.w_scale, l.x_scale, l.bias}) {
        if (t != nullptr && overlap(dst, *t)) {
            refuse("the output shares memory with a source");
            return GGML_EXT_STATUS_UNSUPPORTED;
        }
    }
    void * stream = nullptr;
    int    status = stream_of(*params, d, stream);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const auto *  x        = static_cast<const int8_t *>(l.x->data);
    int64_t       x_stride = l.K;
    const float * x_scale  = floats(l.x_scale);
    int64_t       x_scales = l.x_scale != nullptr ? elements(*l.x_scale) : l.M;
    if (l.x->type == TYPE_F32) {
        auto * workspace = static_cast<char *>(params->workspace);
        status           = quantize(l, workspace, stream);
        x                = reinterpret_cast<const int8_t *>(workspace);
        x_scale          = reinterpret_cast<const float *>(workspace + layout(l).scales);
    } else if (l.packed) {
        x_scale = reinterpret_cast<const float *>(x + ggml_ext_cuda_convrot_scale_offset(l.M, l.K));
    } else {
        x_stride = static_cast<int64_t>(row_stride(*l.x));
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = multiply(*params, d, l, x, x_stride);
    }
    return status == GGML_EXT_STATUS_SUCCESS ? rescale(l, dst, x_scale, x_scales, stream) : status;
}

} // namespace

void register_linear_i8(registrar & r) {
    r.op(GGML_EXT_OP_LINEAR_I8, sizeof(ggml_ext_linear_i8_attrs), infer_linear);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.linear_i8";
    desc.op       = GGML_EXT_OP_LINEAR_I8;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.execute  = execute;
    r.kernel(desc);
}

} // namespace cuda_ops
