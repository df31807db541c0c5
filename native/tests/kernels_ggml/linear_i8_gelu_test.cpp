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

TEST_CASE("FUSE-2: a RESHAPE between sd.linear_i8.v1 and GELU_ERF, as a packed X of several batches needs, is part of the step") {
    kernel_library    library;
    constexpr int64_t K = 64, N = 48, M = 5, batches = 3;
    const auto        reshape_3d = resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t)>("ggml_reshape_3d");
    const auto        gelu_erf   = resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *)>("ggml_gelu_erf");
    for (const bool read_twice : {false, true}) {
        CAPTURE(read_twice);
        model         b;
        ggml_tensor * w       = b.weight(I8, {K, N});
        ggml_tensor * x       = b.typed_input(F32, {K, M, batches});
        ggml_tensor * y       = linear(b, {w, quantize(b, x, 16)}, 0, M * batches);
        ggml_tensor * shaped  = reshape_3d(b.ctx, y, N, M, batches);
        ggml_tensor * gelu    = gelu_erf(b.ctx, shaped);
        ggml_tensor * without = gelu_erf(b.ctx, linear(b, {w, quantize(b, b.g.ggml_scale(b.ctx, x, 1.0f), 16)}, 0, M * batches));
        b.expand(gelu);
        if (read_twice) {
            b.expand(b.g.ggml_sqr(b.ctx, shaped));
        }
        b.expand(without);
        b.allocate();
        b.put(w, random_bytes(static_cast<size_t>(K * N), 1));
        b.put(x, random_floats(static_cast<size_t>(K * M * batches), 2));
        REQUIRE(b.compute() == 0);
        CHECK(gelu->ne[2] == batches);
        CHECK(b.get(gelu) == b.get(without));
        CHECK(b.kernels().find(read_twice ? "cpu.linear_i8,cpu.gelu_erf" : "cpu.linear_i8_gelu_erf") != std::string::npos);
        CHECK((b.kernels().find("cpu.gelu_erf") != std::string::npos) == read_twice);
    }
}
