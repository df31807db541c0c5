#include "quantize.h"
#include "rows.h"

#include <cstdio>

namespace {

void run(int64_t M, int64_t K, int64_t group, int groups) {
    const size_t x_bytes = static_cast<size_t>(M * K) * 4, packed = (ggml_ext_cuda_convrot_size(M, K) + 15) / 16 * 16;
    const size_t out_at = bench::apart(x_bytes), set = out_at + bench::apart(packed),
                 workspace_size = ggml_ext_cuda_quantize_i8_workspace_size(M, K);
    const int           sets    = bench::sets_of(set);
    const bench::memory memory(set * static_cast<size_t>(sets)), workspace(workspace_size + 16);

    const double us = bench::replay_us(sets, [&](int i, cudaStream_t stream) {
        char *                               base = memory.data() + set * static_cast<size_t>(i);
        char *                               out  = base + out_at;
        const ggml_ext_cuda_quantize_i8_args args = {
            M,
            K,
            group,
            ggml_ext_cuda_convrot_padded_rows(M),
            reinterpret_cast<const float *>(base),
            static_cast<size_t>(K) * 4,
            reinterpret_cast<int8_t *>(out),
            static_cast<size_t>(K),
            reinterpret_cast<float *>(out + ggml_ext_cuda_convrot_scale_offset(M, K))};
        bench::check(ggml_ext_cuda::quantize_i8(args, groups, workspace.data(), workspace_size, stream));
    });

    double        error = 0;
    const int64_t step  = M / 7 + 1;
    for (int64_t m = 0; m < M; m += step) {
        const auto x = memory.floats(static_cast<size_t>(m * K) * 4, static_cast<size_t>(K));
        const auto q = bench::bytes(memory.data() + out_at + m * K, static_cast<size_t>(K));
        error        = std::fmax(error, bench::steps_off(reference::rotate_groups({x.begin(), x.end()}, group), q.data()));
    }
    char name[96];
    std::snprintf(name, sizeof(name), groups ? "%ldx%ld, group %ld, %d groups a half warp" : "%ldx%ld, group %ld",
                  static_cast<long>(M), static_cast<long>(K), static_cast<long>(group), groups);
    bench::table_row({name, error, x_bytes + ggml_ext_cuda_convrot_size(M, K), us});
}

} // namespace

void quantize_i8_bench() {
    bench::table_head("quantize_i8, M x K", "largest error, steps");
    for (int64_t K : {3072, 5120, 8192, 10240, 12288}) {
        for (int groups : {1, 2, 4}) {
            if (K <= 4096 || groups > 1) {
                run(4096, K, 256, groups);
            }
        }
    }
    const int64_t shapes[][2] = {
        {4096, 3072},
        {4096, 12288},
        {4096, 3840},
        {4096, 10240},
        {1024, 28672},
        {512, 65536},
        {16384, 3072},
        {128, 3072},
        {70000, 256},
    };
    for (const auto & [M, K] : shapes) {
        run(M, K, 256, 0);
    }
    run(4096, 3072, 1, 0);
    run(4096, 12288, 1, 0);
}
