#pragma once
// How the benchmark measures and prints.

#include "fixture.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace ggml_ext::test {

struct figures {
    double step; // us, from one end to the next, many in a row
    double submit; // the call alone
};

inline figures measure(model & m, int n = 300) {
    using clock_type    = std::chrono::steady_clock;
    const auto us_since = [](clock_type::time_point start) { return std::chrono::duration<double, std::micro>(clock_type::now() - start).count(); };
    for (int i = 0; i < 10; ++i) {
        m.compute();
    }
    std::vector<double> submit;
    const auto          start = clock_type::now();
    for (int i = 0; i < n; ++i) {
        const auto one = clock_type::now();
        m.g.base.ggml_backend_graph_compute_async(m.backend, m.graph);
        submit.push_back(us_since(one));
        m.g.base.ggml_backend_synchronize(m.backend);
    }
    const double all = us_since(start) / n;
    std::sort(submit.begin(), submit.end());
    return {all, submit[submit.size() / 2]};
}

inline figures median(std::vector<figures> all) {
    const auto middle = [&](double figures::* of) {
        std::sort(all.begin(), all.end(), [of](const figures & a, const figures & b) { return a.*of < b.*of; });
        return all[all.size() / 2].*of;
    };
    return {middle(&figures::step), middle(&figures::submit)};
}

inline void print(const char * name, const figures & f, double base) {
    std::printf("| %-44s | %9.1f | %9.1f | %6.2f |\n", name, f.step, f.submit, f.step / base);
}

// 20 times nine native nodes and one that `last` makes
template <typename Last> void two_hundred_nodes(model & m, Last && last) {
    ggml_tensor * x = m.input(F32, {128, 8, 16});
    ggml_tensor * t = x;
    for (int i = 0; i < 20; ++i) {
        for (int k = 0; k < 3; ++k) {
            t = m.g.base.ggml_add(m.ctx, t, x);
            t = m.g.ggml_scale(m.ctx, t, 0.5f);
            t = m.g.ggml_silu(m.ctx, t);
        }
        t = last(t);
    }
    m.expand(t);
}

// a module's kernel against the same kernel launched from C++
void bench_modules();

} // namespace ggml_ext::test
