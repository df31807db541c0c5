#include "arguments.h"
#include "kernel.h"

namespace {

bool stride_ok(int64_t rows, int64_t n, size_t stride) {
    return rows == 1 || stride >= static_cast<size_t>(n) * sizeof(float);
}

} // namespace

int ggml_ext_cpu_layer_norm(const struct ggml_ext_cpu_layer_norm_args * args, int ith, int nth) {
    if (!args || !thread_ok(ith, nth) || !extents_ok(args->rows, args->n) || !args->x || !args->dst || !(args->eps >= 0) ||
        !stride_ok(args->rows, args->n, args->x_stride) || !stride_ok(args->rows, args->n, args->dst_stride) ||
        (args->residual && !(stride_ok(args->rows, args->n, args->residual_stride) && float_aligned(args->residual, args->residual_stride))) ||
        !float_aligned(args->x, args->x_stride, args->weight, args->bias, args->dst, args->dst_stride)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    GGML_EXT_SELECT(rows).layer_norm(*args, share(args->rows, ith, nth));
    return GGML_EXT_CPU_OK;
}

int ggml_ext_cpu_softmax(const struct ggml_ext_cpu_softmax_args * args, int ith, int nth) {
    if (!args || !thread_ok(ith, nth) || !extents_ok(args->rows, args->n) || !args->x || !args->dst ||
        !stride_ok(args->rows, args->n, args->x_stride) || !stride_ok(args->rows, args->n, args->dst_stride) ||
        (args->mask && (!extents_ok(args->mask_rows, args->n) || !stride_ok(args->mask_rows, args->n, args->mask_stride) ||
                        !float_aligned(args->mask, args->mask_stride))) ||
        !float_aligned(args->x, args->x_stride, args->dst, args->dst_stride)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    GGML_EXT_SELECT(rows).softmax(*args, share(args->rows, ith, nth));
    return GGML_EXT_CPU_OK;
}

int ggml_ext_cpu_gelu_erf(int64_t n, const float * x, float * dst, int ith, int nth) {
    if (!extents_ok(n) || !x || !dst || !float_aligned(x, dst) || !thread_ok(ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    const int64_t block = 1024; // shares begin on whole blocks, so that no two threads write one cache line
    const range   mine  = share((n + block - 1) / block, ith, nth);
    const int64_t begin = mine.begin * block, end = mine.end * block < n ? mine.end * block : n;
    if (begin < end) {
        GGML_EXT_SELECT(rows).gelu(x + begin, dst + begin, end - begin);
    }
    return GGML_EXT_CPU_OK;
}
