#include "bench.h"

#include "ggml-ext-kernels/common.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <time.h>

namespace bench {

double thread_seconds() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

std::vector<double> interleaved(const std::vector<side> & sides) {
    std::vector<int>    calls(sides.size(), 1);
    std::vector<double> best(sides.size(), 0);
    for (int round = 0; round < 40; round++) {
        for (size_t s = 0; s < sides.size(); s++) {
            if (!sides[s].work) {
                continue;
            }
            const double start = thread_seconds();
            for (int i = 0; i < calls[s]; i++) {
                sides[s].work();
            }
            const double each = (thread_seconds() - start) / calls[s];
            if (round < 2) { // warm-up and choice of a round of about 2 ms
                calls[s] = std::max(1, static_cast<int>(0.002 / each));
            } else if (best[s] == 0 || each < best[s]) {
                best[s] = each;
            }
        }
    }
    return best;
}

#ifndef GGML_EXT_BENCH_ONEDNN
std::function<void()> onednn_f32(int64_t, int64_t, int64_t, const float *, const float *, float *) {
    return {};
}
std::function<void()> onednn_i8(int64_t, int64_t, int64_t, const uint8_t *, const int8_t *, int32_t *) {
    return {};
}
std::function<void()> onednn_i8(int64_t, int64_t, int64_t, const int8_t *, const int8_t *, int32_t *) {
    return {};
}
std::function<void()> onednn_i8_scaled(int64_t, int64_t, int64_t, const uint8_t *, const int8_t *, const float *, float *) {
    return {};
}
#endif

} // namespace bench

int main(int argc, char ** argv) {
    const struct {
        const char * name;
        void (*run)();
    } families[] = {{"attention", attention_bench},
                    {"gemm_f32", gemm_f32_bench},
                    {"quantize_i8", quantize_i8_bench},
                    {"gemm_i8", gemm_i8_bench},
                    {"rows", rows_bench},
                    {"make_row", make_row_bench},
                    {"rope", rope_bench}};

    std::printf("kernels: %s, one thread\n", ggml_ext_cpu_isa());
    for (const auto & family : families) {
        if (argc < 2 || std::strcmp(argv[1], family.name) == 0) {
            family.run();
        }
    }
    return 0;
}
