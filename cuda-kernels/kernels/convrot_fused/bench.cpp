#include "reference.h"
#include "rows.h"

#include "ggml-ext-cuda-kernels.h"

#include <cstdio>

namespace {

void run(const char * what, int source, int64_t M, int64_t K) {
    const bool          gate    = source == GGML_EXT_CUDA_CONVROT_SWIGLU;
    const int64_t       row     = gate ? 2 * K : K;
    const size_t        x_bytes = static_cast<size_t>(M * row) * 4, packed = (ggml_ext_cuda_convrot_size(M, K) + 15) / 16 * 16;
    const size_t        out_at = bench::apart(x_bytes), set = out_at + bench::apart(packed);
    const int           sets = bench::sets_of(set);
    const bench::memory memory(set * static_cast<size_t>(sets)), weight(static_cast<size_t>(K) * 4);

    ggml_ext_cuda_convrot_fused_args args = {};
    args.source                           = source;
    args.M                                = M;
    args.K                                = K;
    args.padded_rows                      = ggml_ext_cuda_convrot_padded_rows(M);
    args.a_stride = args.b_stride = static_cast<size_t>(row) * 4;
    args.weight                   = reinterpret_cast<const float *>(weight.data());
    args.eps                      = 1e-6f;
    args.scale                    = 0.5f;
    args.q_stride                 = static_cast<size_t>(K);
    const double us               = bench::replay_us(sets, [&](int i, cudaStream_t stream) {
        char * base    = memory.data() + set * static_cast<size_t>(i);
        args.a         = reinterpret_cast<const float *>(base);
        args.b         = args.a + (gate ? K : 0);
        args.q         = reinterpret_cast<int8_t *>(base + out_at);
        args.out_scale = reinterpret_cast<float *>(base + out_at + ggml_ext_cuda_convrot_scale_offset(M, K));
        bench::check(ggml_ext_cuda_convrot_fused(&args, nullptr, 0, stream));
    });

    double     error   = 0;
    const auto weights = weight.floats(0, static_cast<size_t>(K));
    for (int64_t m = 0; m < M; m += M / 7 + 1) {
        const auto x = memory.floats(static_cast<size_t>(m * row) * 4, static_cast<size_t>(row));
        const auto q = bench::bytes(memory.data() + out_at + m * K, static_cast<size_t>(K));
        const auto y = reference::convrot_source(args, x.data(), x.data() + (gate ? K : 0), weights.data());
        error        = std::fmax(error, bench::steps_off(reference::rotate_groups(y, 256), q.data()));
    }
    char name[96];
    std::snprintf(name, sizeof(name), "%s %ldx%ld", what, static_cast<long>(M), static_cast<long>(K));
    bench::table_row({name, error, x_bytes + ggml_ext_cuda_convrot_size(M, K), us});
}

} // namespace

void convrot_fused_bench() {
    bench::table_head("convrot_fused, M x K", "largest error, steps");
    for (int64_t K : {3072, 12288}) {
        run("Scale + ConvRot", GGML_EXT_CUDA_CONVROT_SCALE, 4096, K);
        run("RMSNorm + Mul + ConvRot", GGML_EXT_CUDA_CONVROT_RMS_NORM, 4096, K);
        run("SwiGLU (packed) + ConvRot", GGML_EXT_CUDA_CONVROT_SWIGLU, 4096, K);
    }
}
