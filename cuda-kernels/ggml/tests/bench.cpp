// Figures of the layer on a GPU, printed as a table: one run, both sides, ratios. Not a test.
//   cuda-ggml-bench        GGML_EXT_TEST_GGML_DIR: the folder with ggml

#define DOCTEST_CONFIG_IMPLEMENT
#include "bench.h"

#include "ggml-ext-cuda-kernels/rescale_i8.h"

#include <cuda_runtime.h>

#include <memory>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

using reshape_3d = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t);

// 200 nodes, 20 of them RoPE, which the library may take
void two_hundred_with_rope(model & m) {
    using rope              = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t);
    ggml_tensor * positions = m.input(I32, {16});
    two_hundred_nodes(m, [&](ggml_tensor * t) { return resolve<rope>("ggml_rope")(m.ctx, t, positions, 128, 0); });
}

// 200 nodes as in a language model's layers, hidden 1024, 16 tokens: 20 times a norm, its weight, a product with [1024, 1024],
// RoPE and a residual, two of the ten nodes being reshapes
void twenty_layers(model & m) {
    using rope              = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t);
    ggml_tensor * positions = m.input(I32, {16});
    ggml_tensor * x         = m.input(F32, {1024, 16});
    ggml_tensor * norm      = m.weight(F32, {1024});
    ggml_tensor * w         = m.weight(F32, {1024, 1024});
    ggml_tensor * t         = x;
    for (int i = 0; i < 20; ++i) {
        ggml_tensor * q = m.g.base.ggml_mul_mat(m.ctx, w, m.g.ggml_mul(m.ctx, m.g.ggml_rms_norm(m.ctx, t, 1e-6f), norm));
        q               = m.g.ggml_silu(m.ctx, m.g.ggml_scale(m.ctx, q, 0.5f));
        q               = resolve<rope>("ggml_rope")(m.ctx, resolve<reshape_3d>("ggml_reshape_3d")(m.ctx, q, 128, 8, 16), positions, 128, 0);
        t               = m.g.base.ggml_add(m.ctx, m.g.ggml_reshape_2d(m.ctx, q, 1024, 16), x);
        t               = m.g.ggml_scale(m.ctx, t, 0.5f);
    }
    m.expand(t);
}

figures median_of_seven(model & m) {
    m.allocate();
    m.fill();
    std::vector<figures> all;
    for (int i = 0; i < 7; ++i) {
        all.push_back(measure(m, 200));
    }
    return median(all);
}

// Both sides in one run; `build` makes the graph
template <typename Build> void graph_of_200(const char * what, Build && build) {
    std::printf("\n200 nodes, 20 of them RoPE [128, 8, 16], %s, medians of 7, us\n| %-44s | %9s | %9s | %6s |\n", what, "what", "step", "submit", "ratio");
    double base = 0;
    {
        model m;
        build(m);
        const figures native = median_of_seven(m);
        base                 = native.step;
        print("nothing registered (ggml's own CUDA graph)", native, base);
    }
    kernel_library library;
    model          m;
    build(m);
    print("20 extension steps, plan recorded", median_of_seven(m), base);
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

// the last pass of linear_i8 alone, on memory of its own, in place as there
double rescale_us(int64_t M, int64_t N) {
    float *                       scales = nullptr;
    int32_t *                     sums   = nullptr;
    const size_t                  bytes  = static_cast<size_t>(M * N) * sizeof(float);
    ggml_ext_cuda_rescale_i8_args args{};
    REQUIRE(cudaMalloc(reinterpret_cast<void **>(&sums), bytes) == cudaSuccess);
    REQUIRE(cudaMalloc(reinterpret_cast<void **>(&scales), static_cast<size_t>(std::max(M, N)) * sizeof(float)) == cudaSuccess);
    REQUIRE(cudaMemset(sums, 0, bytes) == cudaSuccess);
    REQUIRE(cudaMemset(scales, 0, static_cast<size_t>(std::max(M, N)) * sizeof(float)) == cudaSuccess);
    args.M = M, args.N = N, args.sum = sums, args.x_scale = scales, args.x_scales = M, args.w_scale = scales, args.w_scales = N;
    args.dst        = reinterpret_cast<float *>(sums);
    args.sum_stride = args.dst_stride = static_cast<size_t>(N) * sizeof(float);
    constexpr int RUNS                = 100;
    double        us                  = 0;
    for (int round = 0; round < 2; ++round) { // the first one warms up
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < RUNS; ++i) {
            REQUIRE(ggml_ext_cuda_rescale_i8(&args, nullptr) == 0);
        }
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / RUNS;
    }
    cudaFree(sums);
    cudaFree(scales);
    return us;
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
        const double us      = measure(m, 20).step / 10;
        const double rescale = rescale_us(M, N);
        std::printf("| %lld x %lld x %lld | %9.1f us | %7.0f TOPS, scaling included | the pass of scaling %7.1f us, %.0f %% |\n",
                    static_cast<long long>(M), static_cast<long long>(N), static_cast<long long>(K), us,
                    2e-6 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K) / us, rescale, 100 * rescale / us);
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
    graph_of_200("element-wise nodes", two_hundred_with_rope);
    graph_of_200("with 20 products 1024 x 1024 x 16", twenty_layers);
    rms_norm_rope();
    linear_i8();
    bench_modules();
    return 0;
}
