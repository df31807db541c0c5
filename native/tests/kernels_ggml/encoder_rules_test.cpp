#include "kernels_ggml/fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, F16 = 1;

ggml_tensor * gelu_erf(model & b, ggml_tensor * x) {
    return resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *)>("ggml_gelu_erf")(b.ctx, x);
}

ggml_tensor * soft_max_ext(model & b, ggml_tensor * x, ggml_tensor * mask, float scale, float max_bias) {
    return resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, float, float)>("ggml_soft_max_ext")(b.ctx, x, mask, scale, max_bias);
}

double exact_gelu(double x) {
    return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
}

std::vector<double> exact_layer_norm(const std::vector<double> & x, const std::vector<float> & weight, const std::vector<float> & shift, double eps) {
    const size_t        n = weight.size();
    std::vector<double> y(x.size());
    for (size_t row = 0; row < x.size(); row += n) {
        double mean = 0, variance = 0;
        for (size_t i = 0; i < n; ++i) {
            mean += x[row + i] / static_cast<double>(n);
        }
        for (size_t i = 0; i < n; ++i) {
            variance += (x[row + i] - mean) * (x[row + i] - mean) / static_cast<double>(n);
        }
        for (size_t i = 0; i < n; ++i) {
            y[row + i] = (x[row + i] - mean) / std::sqrt(variance + eps) * weight[i] + shift[i];
        }
    }
    return y;
}

void check_close(const std::vector<float> & y, const std::vector<double> & expected, double tolerance) {
    REQUIRE(y.size() == expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
        CAPTURE(i);
        REQUIRE(std::fabs(y[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i])));
    }
}

struct dense {
    ggml_tensor *      w, *x, *bias, *sum;
    std::vector<float> wv, xv, bv;

    dense(model & b, int64_t K, int64_t N, int64_t M) {
        w    = b.weight(F32, {K, N});
        bias = b.weight(F32, {N});
        x    = b.typed_input(F32, {K, M});
        sum  = b.g.base.ggml_add(b.ctx, b.g.base.ggml_mul_mat(b.ctx, w, x), bias);
        wv   = random_floats(static_cast<size_t>(K * N), 1, 0.2f);
        xv   = random_floats(static_cast<size_t>(K * M), 2);
        bv   = random_floats(static_cast<size_t>(N), 3);
    }
    void set(model & b) const {
        b.put(w, wv);
        b.put(x, xv);
        b.put(bias, bv);
    }
    std::vector<double> exact() const {
        const auto          K = static_cast<size_t>(w->ne[0]), N = bv.size();
        std::vector<double> y;
        for (size_t m = 0; m < xv.size() / K; ++m) {
            for (size_t n = 0; n < N; ++n) {
                double s = bv[n];
                for (size_t k = 0; k < K; ++k) {
                    s += static_cast<double>(xv[m * K + k]) * wv[n * K + k];
                }
                y.push_back(s);
            }
        }
        return y;
    }
};

} // namespace

TEST_CASE("GEMM-1: MUL_MAT -> ADD(bias) -> GELU_ERF is one product; where the sum has another reader only the bias is fused") {
    kernel_library library;
    for (const bool second_reader : {false, true}) {
        CAPTURE(second_reader);
        model         b;
        const dense   d(b, 384, 100, 33);
        ggml_tensor * y = gelu_erf(b, d.sum);
        b.expand(y);
        ggml_tensor * other = second_reader ? b.g.ggml_sqr(b.ctx, d.sum) : nullptr;
        if (second_reader) {
            b.expand(other);
        }
        b.allocate();
        for (int round = 0; round < 2; ++round) {
            d.set(b);
            REQUIRE(b.compute() == 0);
            auto expected = d.exact();
            for (double & v : expected) {
                v = exact_gelu(v);
            }
            check_close(b.get(y), expected, 3e-6);
        }
        CHECK(b.kernels() == (second_reader ? "cpu.mul_mat_bias,cpu.gelu_erf" : "cpu.mul_mat_bias_gelu_erf"));
    }
}

TEST_CASE("GEMM-1: a bias that is computed, or that has rows, is not fused; the results stay right") {
    kernel_library library;
    for (const bool computed : {false, true}) {
        CAPTURE(computed);
        model         b;
        const int64_t K = 64, N = 48, M = 20;
        const dense   d(b, K, N, M);
        ggml_tensor * leaf  = b.typed_input(F32, {N, computed ? 1 : M});
        ggml_tensor * added = computed ? b.g.ggml_sqr(b.ctx, leaf) : leaf;
        b.g.base.ggml_build_forward_expand(b.graph, added);
        ggml_tensor * y = b.g.base.ggml_add(b.ctx, d.sum->src[0], added);
        b.expand(y);
        b.expand(d.sum);
        b.allocate();
        d.set(b);
        const auto av = random_floats(static_cast<size_t>(leaf->ne[0] * leaf->ne[1]), 4);
        b.put(leaf, av);
        REQUIRE(b.compute() == 0);
        auto expected = d.exact();
        for (size_t i = 0; i < expected.size(); ++i) {
            const float a = av[i % av.size()];
            expected[i] += -static_cast<double>(d.bv[i % d.bv.size()]) + (computed ? static_cast<double>(a) * a : a);
        }
        check_close(b.get(y), expected, 3e-6);
        CHECK(b.kernels() == "cpu.mul_mat_f32");
    }
}

TEST_CASE("FUSE-1: [ADD(residual) ->] NORM -> MUL -> ADD is one layer normalisation") {
    kernel_library library;
    for (const bool residual : {false, true}) {
        for (const int64_t n : {384, 37}) {
            CAPTURE(residual);
            CAPTURE(n);
            model         b;
            const int64_t M      = 19;
            ggml_tensor * x      = b.typed_input(F32, {n, M});
            ggml_tensor * r      = b.typed_input(F32, {n, M});
            ggml_tensor * weight = b.weight(F32, {n});
            ggml_tensor * shift  = b.weight(F32, {n});
            ggml_tensor * first  = b.g.ggml_sqr(b.ctx, x);
            ggml_tensor * sum    = residual ? b.g.base.ggml_add(b.ctx, first, r) : first;
            ggml_tensor * y      = b.g.base.ggml_add(b.ctx, b.g.ggml_mul(b.ctx, b.g.ggml_norm(b.ctx, sum, 1e-5f), weight), shift);
            b.expand(y);
            b.allocate();
            const auto size = static_cast<size_t>(n * M);
            const auto xv = random_floats(size, 5), rv = random_floats(size, 6), wv = random_floats(static_cast<size_t>(n), 7), sv = random_floats(static_cast<size_t>(n), 8);
            b.put(x, xv);
            if (residual) {
                b.put(r, rv);
            }
            b.put(weight, wv);
            b.put(shift, sv);
            REQUIRE(b.compute() == 0);
            std::vector<double> in(size);
            for (size_t i = 0; i < size; ++i) {
                in[i] = static_cast<double>(xv[i]) * xv[i] + (residual ? rv[i] : 0.0f);
            }
            check_close(b.get(y), exact_layer_norm(in, wv, sv, 1e-5), 5e-6);
            CHECK(b.kernels() == (residual ? "cpu.add_layer_norm" : "cpu.layer_norm"));
        }
    }
}

TEST_CASE("FUSE-2: a normalisation that is read besides, or whose shift has rows, runs as ggml has it, with the same result") {
    kernel_library library;
    const int64_t  n = 40, M = 6;
    const auto     xv = random_floats(static_cast<size_t>(n * M), 9), wv = random_floats(static_cast<size_t>(n), 10), sv = random_floats(static_cast<size_t>(n * M), 11);
    for (const bool read_twice : {false, true}) {
        CAPTURE(read_twice);
        model         b;
        ggml_tensor * x      = b.typed_input(F32, {n, M});
        ggml_tensor * weight = b.weight(F32, {n});
        ggml_tensor * shift  = b.weight(F32, {n, read_twice ? 1 : M});
        ggml_tensor * norm   = b.g.ggml_norm(b.ctx, x, 1e-5f);
        ggml_tensor * y      = b.g.base.ggml_add(b.ctx, b.g.ggml_mul(b.ctx, norm, weight), shift);
        b.expand(y);
        if (read_twice) {
            b.expand(b.g.ggml_sqr(b.ctx, norm));
        }
        b.allocate();
        b.put(x, xv);
        b.put(weight, wv);
        const std::vector<float> shifts(sv.begin(), sv.begin() + n * shift->ne[1]);
        b.put(shift, shifts);
        REQUIRE(b.compute() == 0);
        auto expected = exact_layer_norm(std::vector<double>(xv.begin(), xv.end()), wv, std::vector<float>(static_cast<size_t>(n), 0.0f), 1e-5);
        for (size_t i = 0; i < expected.size(); ++i) {
            expected[i] += shifts[i % shifts.size()];
        }
        check_close(b.get(y), expected, 5e-6);
        CHECK(b.kernels() == "");
    }
}

TEST_CASE("KERNEL-5: SOFT_MAX with a scale and masks of every broadcast, the output over the input or not") {
    kernel_library library;
    struct shape {
        std::vector<int64_t> x, mask;
    };
    const std::vector<shape> shapes = {{{17, 5}, {}}, {{64, 64, 3, 2}, {64, 64, 1, 2}}, {{33, 4, 6, 2}, {33, 7, 3, 1}}, {{16, 2, 4, 3}, {16, 2, 1, 1}}, {{9, 3, 2, 4}, {9, 3, 2, 2}}};
    for (const shape & s : shapes) {
        CAPTURE(s.x.size());
        CAPTURE(s.x[0]);
        model         b;
        ggml_tensor * x    = b.typed_input(F32, s.x);
        ggml_tensor * mask = s.mask.empty() ? nullptr : b.typed_input(F32, s.mask);
        ggml_tensor * y    = soft_max_ext(b, b.g.ggml_scale(b.ctx, x, 1.0f), mask, 0.7f, 0.0f);
        b.expand(b.g.ggml_scale(b.ctx, y, 1.0f));
        b.g.base.ggml_set_output(y);
        b.allocate();
        const auto xv = random_floats(b.g.base.ggml_nbytes(x) / 4, 12, 8.0f);
        b.put(x, xv);
        std::vector<float> mv;
        if (mask != nullptr) {
            mv    = random_floats(b.g.base.ggml_nbytes(mask) / 4, 13, 2.0f);
            mv[1] = -INFINITY;
            b.put(mask, mv);
        }
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "cpu.soft_max");
        std::vector<double> expected(xv.size());
        const auto          n = static_cast<size_t>(x->ne[0]);
        for (size_t row = 0; row < xv.size() / n; ++row) {
            const auto i1 = row % static_cast<size_t>(x->ne[1]), i2 = row / static_cast<size_t>(x->ne[1]) % static_cast<size_t>(x->ne[2]),
                       i3 = row / static_cast<size_t>(x->ne[1] * x->ne[2]);
            double most = -INFINITY, total = 0;
            for (int pass = 0; pass < 3; ++pass) {
                for (size_t i = 0; i < n; ++i) {
                    double v = 0.7f * xv[row * n + i];
                    if (mask != nullptr) {
                        const auto m1 = static_cast<size_t>(mask->ne[1]), m2 = static_cast<size_t>(mask->ne[2]), m3 = static_cast<size_t>(mask->ne[3]);
                        v += mv[((i3 % m3 * m2 + i2 % m2) * m1 + i1) * n + i];
                    }
                    if (pass == 0) {
                        most = std::fmax(most, v);
                    } else if (pass == 1) {
                        total += std::exp(v - most);
                    } else {
                        expected[row * n + i] = std::exp(v - most) / total;
                    }
                }
            }
        }
        check_close(b.get(y), expected, 2e-6);
    }
}

TEST_CASE("KERNEL-1: SOFT_MAX with ALiBi or a half-precision mask stays ggml's") {
    kernel_library library;
    for (const bool alibi : {true, false}) {
        model         b;
        ggml_tensor * x    = b.typed_input(F32, {16, 4, 2});
        ggml_tensor * mask = b.typed_input(alibi ? F32 : F16, {16, 4});
        b.expand(soft_max_ext(b, x, mask, 1.0f, alibi ? 8.0f : 0.0f));
        b.allocate();
        b.put(x, random_floats(128, 1));
        b.put(mask, std::vector<uint16_t>(b.g.base.ggml_nbytes(mask) / 2, 0));
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "");
        CHECK(b.refusals().find(alibi ? "ALiBi" : "mask") != std::string::npos);
    }
}

TEST_CASE("KERNEL-1: GELU_ERF is served, other unary functions are not") {
    kernel_library library;
    for (const bool erf : {true, false}) {
        CAPTURE(erf);
        model         b;
        ggml_tensor * x = b.typed_input(F32, {1000, 3});
        ggml_tensor * y = erf ? gelu_erf(b, x) : b.g.ggml_silu(b.ctx, x);
        b.expand(y);
        b.allocate();
        const auto xv = random_floats(3000, 14, 6.0f);
        b.put(x, xv);
        REQUIRE(b.compute() == 0);
        std::vector<double> expected;
        for (const float v : xv) {
            expected.push_back(erf ? exact_gelu(v) : v / (1 + std::exp(-static_cast<double>(v))));
        }
        check_close(b.get(y), expected, 2e-6);
        CHECK(b.kernels() == (erf ? "cpu.gelu_erf" : ""));
    }
}
