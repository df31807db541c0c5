#include "bench.h"
#include "problem.h"

#include <cstdio>

void attention_bench() {
    std::printf("\n### attention: 12 heads, F32\n\n| queries | keys | d | FMA peak GFLOP/s | ours us | ours GFLOP/s | of peak |\n"
                "|---|---|---|---|---|---|---|\n");
    const int64_t shapes[][3] = {{16, 16, 32}, {128, 128, 32}, {512, 512, 32}, {512, 512, 64}, {128, 2048, 128}};
    for (const auto & [queries, keys, d] : shapes) {
        attention_problem p(queries, keys, d, 12);
        const bench::peak peak   = bench::peak_f32();
        const auto        t      = bench::interleaved({{"ours", [&p] { p.run(); }}, {"peak", peak.work}});
        const double      gflops = 4e-9 * static_cast<double>(queries * keys * d * 12) / t[0];
        const double      most   = 2e-9 * peak.macs / t[1];
        std::printf("| %ld | %ld | %ld | %.1f | %.1f | %.1f | %.0f %% |\n", static_cast<long>(queries), static_cast<long>(keys),
                    static_cast<long>(d), most, 1e6 * t[0], gflops, 100 * gflops / most);
    }
}
