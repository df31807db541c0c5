#include "kernels_ggml/int8.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, I8 = 24;

struct layer {
    static constexpr int64_t K = 64, N = 50;
    int64_t                  M;
    ggml_tensor *            w, *x, *x_scale, *bias, *y, *gelu;

    layer(model & b, int64_t rows) : M(rows) {
        w       = b.weight(I8, {K, N});
        bias    = b.weight(F32, {N});
        x       = b.typed_input(I8, {K, M});
        x_scale = b.typed_input(F32, {M});
        y       = linear(b, {w, x, x_scale, bias}, GGML_EXT_LINEAR_I8_X_SCALE | GGML_EXT_LINEAR_I8_BIAS);
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        gelu = resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *)>("ggml_gelu_erf")(b.ctx, y);
    }

    void check(model & b) const {
        const auto         wv = random_bytes(static_cast<size_t>(K * N), 1), xv = random_bytes(static_cast<size_t>(K * M), 2);
        const auto         bv = random_floats(static_cast<size_t>(N), 3);
        std::vector<float> sv(static_cast<size_t>(M));
        for (size_t m = 0; m < sv.size(); ++m) { // from values that are all tail to values around zero
            sv[m] = 1e-4f / static_cast<float>(1 + m);
        }
        b.put(w, wv);
        b.put(x, xv);
        b.put(x_scale, sv);
        b.put(bias, bv);
        REQUIRE(b.compute() == 0);
        const auto got = b.get(gelu);
        for (int64_t i = 0; i < M * N; ++i) {
            CAPTURE(i);
            const double v        = scaled(dot(&xv[static_cast<size_t>(i / N * K)], &wv[static_cast<size_t>(i % N * K)], K), &sv[static_cast<size_t>(i / N)],
                                           nullptr, &bv[static_cast<size_t>(i % N)]);
            const double expected = 0.5 * v * std::erfc(-v / std::sqrt(2.0));
            REQUIRE(std::fabs(got[static_cast<size_t>(i)] - expected) <= 1e-6 * std::fabs(expected));
        }
    }
};

} // namespace

TEST_CASE("I8-1: sd.linear_i8.v1 -> GELU_ERF is one step, with one row and with many") {
    kernel_library library;
    for (const int64_t rows : {1, 2, 33}) {
        CAPTURE(rows);
        model       b;
        const layer l(b, rows);
        b.expand(l.gelu);
        b.allocate();
        l.check(b);
        CHECK(b.kernels() == "cpu.linear_i8_gelu_erf");
    }
}

TEST_CASE("FUSE-2: where the layer's output has another reader the two steps run alone, with the same result") {
    kernel_library library;
    model          b;
    const layer    l(b, 20);
    b.expand(l.gelu);
    b.expand(b.g.ggml_sqr(b.ctx, l.y));
    b.allocate();
    l.check(b);
    CHECK(b.kernels() == "cpu.linear_i8,cpu.gelu_erf");
}
