#include "arguments.h"
#include "kernel.h"

namespace {

bool valid(const ggml_ext_cpu_quantize_i8_args & a, int ith, int nth) {
    const bool group = a.group == 1 || a.group == 4 || a.group == 16 || a.group == 64 || a.group == 256;
    return group && a.M >= 1 && extents_ok(a.padded_rows, a.K) && a.K % a.group == 0 && a.padded_rows >= a.M && a.x && a.q && a.scale &&
           float_aligned(a.x, a.x_stride, a.scale) && thread_ok(ith, nth) && (a.M == 1 || a.x_stride >= static_cast<size_t>(a.K) * sizeof(float)) &&
           (a.padded_rows == 1 || a.q_stride >= static_cast<size_t>(a.K));
}

} // namespace

size_t ggml_ext_cpu_quantize_i8_scratch_size(int64_t K, int64_t group) {
    return !extents_ok(K) || group <= 1 ? 0 : static_cast<size_t>(2 * scratch_row(K)) * sizeof(float);
}

int ggml_ext_cpu_quantize_i8(
    const struct ggml_ext_cpu_quantize_i8_args * args, void * scratch, size_t scratch_size, int ith, int nth) {
    if (!args || !valid(*args, ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    const size_t needed = ggml_ext_cpu_quantize_i8_scratch_size(args->K, args->group);
    if (needed > 0 && (!scratch || !float_aligned(scratch))) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (scratch_size < needed) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    GGML_EXT_SELECT(quantize_i8).rows(*args, share(args->padded_rows, ith, nth), static_cast<float *>(scratch));
    return GGML_EXT_CPU_OK;
}

int64_t ggml_ext_cpu_convrot_padded_rows(int64_t M) {
    return (M + 3) / 4 * 4;
}

size_t ggml_ext_cpu_convrot_scale_offset(int64_t M, int64_t K) {
    return !extents_ok(M, K) ? 0 : static_cast<size_t>(ggml_ext_cpu_convrot_padded_rows(M)) * static_cast<size_t>(K);
}

size_t ggml_ext_cpu_convrot_size(int64_t M, int64_t K) {
    return !extents_ok(M, K) ? 0 : ggml_ext_cpu_convrot_scale_offset(M, K) + static_cast<size_t>(M) * sizeof(float);
}
