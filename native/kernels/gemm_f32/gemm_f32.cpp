#include "arguments.h"
#include "kernel.h"
#include "packed.h"

namespace {

constexpr char KIND[8] = "gemmf32";

int64_t panel_count(int64_t n) {
    return (n + GGML_EXT_SELECT(gemm_f32).nr - 1) / GGML_EXT_SELECT(gemm_f32).nr;
}

bool valid(const ggml_ext_cpu_gemm_f32_args & a, int ith, int nth) {
    return extents_ok(a.M, a.N, a.K) && a.packed && a.x && a.dst && thread_ok(ith, nth) &&
           (a.M == 1 || (a.x_stride >= static_cast<size_t>(a.K) * sizeof(float) &&
                         a.dst_stride >= static_cast<size_t>(a.N) * sizeof(float))) &&
           float_aligned(a.packed, a.x, a.x_stride, a.dst, a.dst_stride, a.bias) &&
           (a.activation == GGML_EXT_CPU_ACT_NONE || a.activation == GGML_EXT_CPU_ACT_GELU_ERF);
}

} // namespace

size_t ggml_ext_cpu_gemm_f32_packed_size(int64_t N, int64_t K) {
    if (!extents_ok(N, K)) {
        return 0;
    }
    return sizeof(packed_head) + static_cast<size_t>(panel_count(N)) * static_cast<size_t>(K) *
                                     static_cast<size_t>(GGML_EXT_SELECT(gemm_f32).nr) * sizeof(float);
}

int ggml_ext_cpu_gemm_f32_pack(
    int64_t N, int64_t K, const float * w, size_t w_stride, void * packed, size_t packed_size, int ith, int nth) {
    if (!extents_ok(N, K) || !w || !packed || !thread_ok(ith, nth) ||
        (N > 1 && w_stride < static_cast<size_t>(K) * sizeof(float)) || !float_aligned(w, w_stride, packed)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (packed_size < ggml_ext_cpu_gemm_f32_packed_size(N, K)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    const gemm_f32_kernels & kernels = GGML_EXT_SELECT(gemm_f32);
    if (ith == 0) {
        write_head(packed, KIND, N, K);
    }
    float * panels = reinterpret_cast<float *>(static_cast<char *>(packed) + sizeof(packed_head));
    each_panel(N, kernels.nr, ith, nth, [&](int64_t first, int64_t columns) {
        kernels.pack_panel(reinterpret_cast<const float *>(reinterpret_cast<const char *>(w) + static_cast<size_t>(first) * w_stride), w_stride,
                           columns, K, panels + first * K);
    });
    return GGML_EXT_CPU_OK;
}

void ggml_ext_cpu_gemm_f32_pack_share(int64_t N, int ith, int nth, int64_t * begin, int64_t * end) {
    const range mine = share_panels(N, GGML_EXT_SELECT(gemm_f32).nr, ith, nth);
    *begin           = mine.begin;
    *end             = mine.end;
}

size_t ggml_ext_cpu_gemm_f32_scratch_size(int64_t M, int64_t N, int64_t K) {
    (void) N; // the block of x alone lives in scratch
    return !extents_ok(M, K) ? 0 : GGML_EXT_SELECT(gemm_f32).scratch_size(M, K);
}

int ggml_ext_cpu_gemm_f32(
    const struct ggml_ext_cpu_gemm_f32_args * args, void * scratch, size_t scratch_size, int ith, int nth) {
    if (!args || !scratch || !float_aligned(scratch) || !valid(*args, ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (scratch_size < ggml_ext_cpu_gemm_f32_scratch_size(args->M, args->N, args->K) ||
        args->packed_size < ggml_ext_cpu_gemm_f32_packed_size(args->N, args->K)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    if (!head_matches(args->packed, KIND, args->N, args->K)) {
        return GGML_EXT_CPU_WRONG_PACKING;
    }
    const gemm_f32_kernels & kernels = GGML_EXT_SELECT(gemm_f32);
    const float *            panels =
        reinterpret_cast<const float *>(static_cast<const char *>(args->packed) + sizeof(packed_head));
    const tile2d mine = share_product(args->M, args->N, kernels.mr, kernels.nr, ith, nth);
    if (mine.m.begin < mine.m.end && mine.n.begin < mine.n.end) {
        kernels.run(*args, panels, mine.m, mine.n, static_cast<float *>(scratch));
    }
    return GGML_EXT_CPU_OK;
}
