#include "kernel.cuh"
#include "status.h"

using namespace ggml_ext_cuda;

namespace {

constexpr int THREADS = 256;

int validate(const ggml_ext_cuda_rescale_i8_args & a) {
    const auto ll = [](int64_t v) { return static_cast<long long>(v); };
    if (a.M < 1 || a.N < 1) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: M and N must be at least 1, got %lld and %lld",
                    ll(a.M), ll(a.N));
    }
    if (!a.sum || !a.dst) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: %s is null", a.sum ? "dst" : "sum");
    }
    if (a.x_scale && a.x_scales != 1 && a.x_scales != a.M) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: x_scales is %lld, expected 1 or M = %lld",
                    ll(a.x_scales), ll(a.M));
    }
    if (a.w_scale && a.w_scales != 1 && a.w_scales != a.N) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: w_scales is %lld, expected 1 or N = %lld",
                    ll(a.w_scales), ll(a.N));
    }
    const size_t row = static_cast<size_t>(a.N) * sizeof(float);
    if ((a.sum_stride | a.dst_stride) % sizeof(float) != 0 || (a.M > 1 && (a.sum_stride < row || a.dst_stride < row))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "rescale_i8: sum_stride %zu and dst_stride %zu must be multiples of 4 and at least N * 4 = %zu",
                    a.sum_stride, a.dst_stride, row);
    }
    if (!aligned(a.sum, 4) || !aligned(a.dst, 4) || !aligned(a.x_scale, 4) || !aligned(a.w_scale, 4) ||
        !aligned(a.bias, 4)) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: a pointer is not aligned to 4 bytes");
    }
    return GGML_EXT_CUDA_OK;
}

bool wide(const ggml_ext_cuda_rescale_i8_args & a) {
    return a.N % 4 == 0 && (a.sum_stride | a.dst_stride) % 16 == 0 && aligned(a.sum, 16) && aligned(a.dst, 16) &&
           aligned(a.bias, 16) && (a.w_scales == 1 || aligned(a.w_scale, 16));
}

} // namespace

int ggml_ext_cuda::load_rescale_i8() {
    const int status = load("rescale_i8", rescale_i8<1>);
    return status ? status : load("rescale_i8", rescale_i8<4>);
}

int ggml_ext_cuda_rescale_i8(const struct ggml_ext_cuda_rescale_i8_args * args, void * stream) {
    if (!args) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rescale_i8: args is null");
    }
    if (const int status = validate(*args)) {
        return status;
    }
    const bool    vector = wide(*args);
    const int64_t tile   = THREADS * (vector ? 4 : 1);
    const int64_t tiles  = (args->N + tile - 1) / tile;
    if (args->M > MAX_BLOCKS / tiles) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "rescale_i8: M = %lld, N = %lld need more blocks than a grid holds",
                    static_cast<long long>(args->M), static_cast<long long>(args->N));
    }
    return launch("rescale_i8", vector ? rescale_i8<4> : rescale_i8<1>, args->M * tiles, THREADS, 0, stream, *args,
                  static_cast<unsigned>(tiles));
}
