// Figures of the layer on a GPU, printed as a table: one run, both sides, ratios. Not a test.
//   cuda-ggml-bench        GGML_EXT_TEST_GGML_DIR: the folder with ggml

#define DOCTEST_CONFIG_IMPLEMENT
#include "bench.h"

#include <memory>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// 200 nodes, 20 of them RoPE, which the library may take
void two_hundred_with_rope(model & m) {
    using rope = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t);
    ggml_tensor * positions = m.input(I32, {16});
    two_hundred_nodes(m, [&](ggml_tensor * t) { return resolve<rope>("ggml_rope")(m.ctx, t, positions, 128, 0); });
}

void graph_of_200() {
    std::printf("\n200 nodes, 20 of them RoPE [128, 8, 16], us\n| %-44s | %9s | %9s | %6s |\n", "what", "step", "submit", "ratio");
    double base = 0;
    {
        model m;
        two_hundred_with_rope(m);
        m.allocate();
        const figures native = measure(m);
        base                 = native.step;
        print("nothing registered (ggml's own CUDA graph)", native, base);
    }
    kernel_library library;
    model          m;
    two_hundred_with_rope(m);
    m.allocate();
    print("20 extension steps, plan recorded", measure(m), base);
    std::printf("  recorded %llu, replayed %llu, kernels %s\n", static_cast<unsigned long long>(m.stats().n_recorded),
                static_cast<unsigned long long>(m.stats().n_replayed), m.kernels().substr(0, 40).c_str());
}

// the fused rule against ggml's three nodes, so many copies in a graph that launches do not count
void rms_norm_rope() {
    using rope = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t);
    std::printf("\nRMS_NORM, MUL, ROPE, 24 heads x 128, 4096 tokens, us a triple (20 in a graph)\n");
    double base = 0;
    for (const bool ours : {false, true}) {
        std::unique_ptr<kernel_library> library = ours ? std::make_unique<kernel_library>() : nullptr;
        model                           m;
        ggml_tensor *                   x         = m.input(F32, {128, 24, 4096});
        ggml_tensor *                   positions = m.input(I32, {4096});
        ggml_tensor *                   w         = m.weight(F32, {128});
        ggml_tensor *                   t         = x;
        for (int i = 0; i < 20; ++i) {
            t = resolve<rope>("ggml_rope")(m.ctx, m.g.ggml_mul(m.ctx, m.g.ggml_rms_norm(m.ctx, t, 1e-6f), w), positions, 128, 0);
        }
        m.expand(t);
        m.allocate();
        m.put(x, random_floats(128 * 24 * 4096, 1));
        m.put(w, std::vector<float>(128, 1.0f));
        figures f = measure(m, 100);
        f.step /= 20;
        base = ours ? base : f.step;
        print(ours ? "cuda.rms_norm_rope" : "ggml", f, base);
    }
}

void linear_i8() {
    std::printf("\nsd.linear_i8.v1 with scales, I8 activations\n");
    kernel_library library;
    for (const auto & [M, N, K] : {std::tuple<int64_t, int64_t, int64_t>{8192, 8192, 8192}, {4096, 12288, 3072}}) {
        model                          m;
        const ggml_ext_linear_i8_attrs attrs{GGML_EXT_LINEAR_I8_W_SCALE | GGML_EXT_LINEAR_I8_X_SCALE, 0};
        ggml_tensor *                  w  = m.weight(I8, {K, N});
        ggml_tensor *                  ws = m.weight(F32, {N});
        ggml_tensor *                  x  = m.input(I8, {K, M});
        ggml_tensor *                  xs = m.input(F32, {M});
        for (int i = 0; i < 10; ++i) {
            m.expand(m.node(GGML_EXT_OP_LINEAR_I8, {w, x, ws, xs}, &attrs, sizeof(attrs)));
        }
        m.allocate();
        m.put(w, random_bytes(static_cast<size_t>(K * N), 1));
        m.put(x, random_bytes(static_cast<size_t>(K * M), 2));
        m.put(ws, random_floats(static_cast<size_t>(N), 3));
        m.put(xs, random_floats(static_cast<size_t>(M), 4));
        const double us = measure(m, 20).step / 10;
        std::printf("| %lld x %lld x %lld | %9.1f us | %7.0f TOPS, scaling included |\n", static_cast<long long>(M), static_cast<long long>(N),
                    static_cast<long long>(K), us, 2e-6 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K) / us);
    }
}

} // namespace

int main() {
    if (std::getenv("GGML_EXT_TEST_GGML_DIR") == nullptr || find_gpu() == nullptr) {
        std::printf("skipped: no CUDA device of ggml's\n");
        return 77;
    }
    doctest::Context context;
    context.setAsDefaultForAssertsOutOfTestCases();
    graph_of_200();
    rms_norm_rope();
    linear_i8();
    bench_modules();
    return 0;
}
