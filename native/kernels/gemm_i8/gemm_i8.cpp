#include "arguments.h"
#include "kernel.h"
#include "packed.h"

namespace {

constexpr char KIND[8] = "gemmi8 ";

const gemm_i8_kernels & selected() {
#if defined(GGML_EXT_AMX)
    if (ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::amx) {
        return gemm_i8_amx;
    }
#endif
#if defined(__x86_64__)
    if (ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::avx2) {
        return gemm_i8_avx2_bytes;
    }
#endif
    return GGML_EXT_SELECT(gemm_i8);
}

// Null where an instruction set has none, its packed weights being read faster.
const unpacked_i8_kernels * unpacked() {
#if defined(__x86_64__)
    return ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::avx2 ? &unpacked_i8_avx2 : nullptr;
#else
    return nullptr;
#endif
}

int64_t panel_count(int64_t n) {
    return (n + selected().nr - 1) / selected().nr;
}

bool reads_unpacked(const ggml_ext_cpu_gemm_i8_args & a) {
    return a.w && a.M <= ggml_ext_cpu_gemm_i8_unpacked_rows();
}

bool valid(const ggml_ext_cpu_gemm_i8_args & a, int ith, int nth) {
    return extents_ok(a.M, a.N, a.K) && (a.packed || reads_unpacked(a)) && a.x && a.dst && thread_ok(ith, nth) &&
           (!a.w || a.N == 1 || a.w_stride >= static_cast<size_t>(a.K)) &&
           (!a.x_scale || a.x_scales == 1 || a.x_scales == a.M) &&
           (!a.w_scale || a.w_scales == 1 || a.w_scales == a.N) &&
           (a.M == 1 ||
            (a.x_stride >= static_cast<size_t>(a.K) && a.dst_stride >= static_cast<size_t>(a.N) * sizeof(float))) &&
           float_aligned(a.packed, a.x_scale, a.w_scale, a.bias, a.dst, a.dst_stride) &&
           (a.activation == GGML_EXT_CPU_ACT_NONE || a.activation == GGML_EXT_CPU_ACT_GELU_ERF);
}

} // namespace

int64_t ggml_ext_cpu_gemm_i8_unpacked_rows(void) {
    return unpacked() ? unpacked()->most_rows : 0;
}

size_t ggml_ext_cpu_gemm_i8_packed_size(int64_t N, int64_t K) {
    return !extents_ok(N, K) ? 0 : sizeof(packed_head) + static_cast<size_t>(panel_count(N)) * selected().panel_bytes(K);
}

int ggml_ext_cpu_gemm_i8_pack(
    int64_t N, int64_t K, const int8_t * w, size_t w_stride, void * packed, size_t packed_size, int ith, int nth) {
    if (!extents_ok(N, K) || !w || !packed || !thread_ok(ith, nth) || (N > 1 && w_stride < static_cast<size_t>(K)) ||
        !float_aligned(packed)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (K > GGML_EXT_CPU_GEMM_I8_MAX_K) {
        return GGML_EXT_CPU_UNSUPPORTED;
    }
    if (packed_size < ggml_ext_cpu_gemm_i8_packed_size(N, K)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    const gemm_i8_kernels & kernels = selected();
    if (ith == 0) {
        write_head(packed, KIND, N, K);
    }
    char *       panels = static_cast<char *>(packed) + sizeof(packed_head);
    const size_t size   = kernels.panel_bytes(K);
    each_panel(N, kernels.nr, ith, nth, [&](int64_t first, int64_t columns) {
        kernels.pack_panel(w + static_cast<size_t>(first) * w_stride, w_stride, columns, K, panels + static_cast<size_t>(first / kernels.nr) * size);
    });
    return GGML_EXT_CPU_OK;
}

void ggml_ext_cpu_gemm_i8_pack_share(int64_t N, int ith, int nth, int64_t * begin, int64_t * end) {
    const range mine = share_panels(N, selected().nr, ith, nth);
    *begin           = mine.begin;
    *end             = mine.end;
}

size_t ggml_ext_cpu_gemm_i8_scratch_size(int64_t M, int64_t N, int64_t K) {
    (void) N; // x alone lives in scratch
    if (!extents_ok(M, K)) {
        return 0;
    }
    const size_t packed = selected().scratch_size(M, K);
    const size_t other  = M <= ggml_ext_cpu_gemm_i8_unpacked_rows() ? unpacked()->scratch_size(M, K) : 0;
    return packed > other ? packed : other;
}

int ggml_ext_cpu_gemm_i8(
    const struct ggml_ext_cpu_gemm_i8_args * args, void * scratch, size_t scratch_size, int ith, int nth) {
    if (!args || !scratch || !float_aligned(scratch) || !valid(*args, ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (args->K > GGML_EXT_CPU_GEMM_I8_MAX_K) {
        return GGML_EXT_CPU_UNSUPPORTED;
    }
    if (scratch_size < ggml_ext_cpu_gemm_i8_scratch_size(args->M, args->N, args->K)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    if (reads_unpacked(*args)) {
        unpacked()->run(*args, share(args->N, ith, nth), static_cast<char *>(scratch));
        return GGML_EXT_CPU_OK;
    }
    if (args->packed_size < ggml_ext_cpu_gemm_i8_packed_size(args->N, args->K)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    if (!head_matches(args->packed, KIND, args->N, args->K)) {
        return GGML_EXT_CPU_WRONG_PACKING;
    }
    const gemm_i8_kernels & kernels = selected();
    const tile2d            mine    = share_product(args->M, args->N, kernels.mr, kernels.nr, ith, nth);
    if (mine.m.begin < mine.m.end && mine.n.begin < mine.n.end) {
        kernels.run(*args, {static_cast<const char *>(args->packed) + sizeof(packed_head), kernels.panel_bytes(args->K)}, mine.m, mine.n,
                    static_cast<char *>(scratch));
    }
    return GGML_EXT_CPU_OK;
}
