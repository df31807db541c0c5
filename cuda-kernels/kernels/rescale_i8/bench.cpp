#include "bench.h"
#include "reference.h"

#include "ggml-ext-cuda-kernels.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace {

void run(int64_t M, int64_t N) {
    const size_t        bytes = static_cast<size_t>(M * N) * 4;
    const size_t        step  = bench::apart(bytes);
    const int           sets  = bench::sets_of(2 * step);
    const bench::memory memory(2 * step * static_cast<size_t>(sets)), x(static_cast<size_t>(M) * 4),
        w(static_cast<size_t>(N) * 4), b(static_cast<size_t>(N) * 4);

    const double us = bench::replay_us(sets, [&](int i, cudaStream_t stream) {
        char *                              base = memory.data() + 2 * step * static_cast<size_t>(i);
        const ggml_ext_cuda_rescale_i8_args args = {M,
                                                    N,
                                                    reinterpret_cast<const int32_t *>(base),
                                                    static_cast<size_t>(N) * 4,
                                                    reinterpret_cast<const float *>(x.data()),
                                                    M,
                                                    reinterpret_cast<const float *>(w.data()),
                                                    N,
                                                    reinterpret_cast<const float *>(b.data()),
                                                    reinterpret_cast<float *>(base + step),
                                                    static_cast<size_t>(N) * 4};
        bench::check(ggml_ext_cuda_rescale_i8(&args, stream));
    });

    const auto xs = x.floats(0, static_cast<size_t>(M)), ws = w.floats(0, static_cast<size_t>(N)),
               bs = b.floats(0, static_cast<size_t>(N));
    double error  = 0;
    for (int64_t m = 0; m < M; m += M / 7 + 1) {
        const auto sum = memory.floats(static_cast<size_t>(m * N) * 4, static_cast<size_t>(N));
        const auto dst = memory.floats(step + static_cast<size_t>(m * N) * 4, static_cast<size_t>(N));
        for (size_t n = 0; n < sum.size(); n++) {
            int32_t s;
            std::memcpy(&s, &sum[n], 4);
            const double expected = reference::rescaled(s, xs[static_cast<size_t>(m)], ws[n], bs[n]);
            error                 = std::fmax(error, std::fabs(dst[n] - expected) / std::fabs(expected));
        }
    }
    char name[64];
    std::snprintf(name, sizeof(name), "%ldx%ld", static_cast<long>(M), static_cast<long>(N));
    bench::table_row({name, error, 2 * bytes, us});
}

} // namespace

void rescale_i8_bench() {
    bench::table_head("rescale_i8 with scales of rows and columns and a bias, M x N", "largest relative error");
    for (const auto & [M, N] : {std::pair<int64_t, int64_t>{8192, 8192}, {4096, 12288}, {4096, 3072}, {260, 3072}}) {
        run(M, N);
    }
}
