#include "kernels_ggml/fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, F16 = 1;

// Errors against double precision: the largest over the sum of the products' magnitudes, and the root of their mean square
struct errors {
    double worst, rms;
};

errors errors_of(const std::vector<float> & w, const std::vector<float> & x, const std::vector<float> & y, int64_t K, int64_t N) {
    const int64_t M     = static_cast<int64_t>(x.size()) / K;
    double        worst = 0, squares = 0;
    REQUIRE(static_cast<int64_t>(y.size()) == M * N);
    for (int64_t m = 0; m < M; ++m) {
        for (int64_t n = 0; n < N; ++n) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < K; ++k) {
                const double p = static_cast<double>(w[static_cast<size_t>(n * K + k)]) * x[static_cast<size_t>(m * K + k)];
                sum += p;
                magnitude += std::fabs(p);
            }
            const double error = std::fabs(y[static_cast<size_t>(m * N + n)] - sum);
            worst              = std::fmax(worst, error / (magnitude + 1e-30));
            squares += error * error;
        }
    }
    return {worst, std::sqrt(squares / static_cast<double>(M * N))};
}

double worst_error(const std::vector<float> & w, const std::vector<float> & x, const std::vector<float> & y, int64_t K, int64_t N) {
    return errors_of(w, x, y, K, N).worst;
}

struct product {
    std::vector<float> w, x, y;
    std::string        kernels;
};

product multiply(int64_t K, int64_t N, std::vector<int64_t> ne_x, int n_threads, bool direct = false) {
    model         b(n_threads, direct);
    ggml_tensor * w = b.weight(F32, {K, N});
    ggml_tensor * x = b.typed_input(F32, ne_x);
    ggml_tensor * y = b.g.base.ggml_mul_mat(b.ctx, w, x);
    b.expand(y);
    b.allocate();
    product p;
    p.w = random_floats(static_cast<size_t>(K * N), 1);
    p.x = random_floats(static_cast<size_t>(x->ne[0] * x->ne[1] * x->ne[2] * x->ne[3]), 2);
    b.put(w, p.w);
    b.put(x, p.x);
    REQUIRE(b.compute() == 0);
    p.y       = b.get(y);
    p.kernels = b.kernels();
    return p;
}

// A product whose weight is set again and again.
struct weighed {
    const int64_t      K, N;
    model              b;
    ggml_tensor *      w = b.weight(F32, {K, N});
    ggml_tensor *      x;
    ggml_tensor *      y;
    std::vector<float> xv, wv;

    weighed(int64_t k, int64_t n, int64_t m, uint32_t seed)
        : K(k), N(n), x(b.typed_input(F32, {k, m})), y(b.g.base.ggml_mul_mat(b.ctx, w, x)), xv(random_floats(static_cast<size_t>(k * m), seed)),
          wv(random_floats(static_cast<size_t>(k * n), seed + 1)) {
        b.expand(y);
        b.allocate();
        b.put(x, xv);
    }

    void set() { b.put(w, wv); }

    double error() {
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "cpu.mul_mat_f32");
        return worst_error(wv, xv, b.get(y), K, N);
    }
};

} // namespace

TEST_CASE("GEMM-1: against double precision the override errs at most twice as much as ggml's own product, for ragged shapes and batches") {
    const struct {
        int64_t              K, N;
        std::vector<int64_t> x;
    } shapes[] = {
        {16, 17, {16, 16}},
        {384, 384, {384, 16}},
        {384, 1536, {384, 33}},
        {1536, 384, {1536, 65}},
        {7, 5, {7, 9}},
        {130, 131, {130, 150}},
        {64, 48, {64, 3, 5, 2}},
        {3, 51865, {3, 8}},
        {32, 24, {32, 12, 1, 3}},
        {8, 16, {8, 70, 100, 10}},
    };
    for (const auto & s : shapes) {
        CAPTURE(s.K);
        CAPTURE(s.N);
        const product stock = multiply(s.K, s.N, s.x, 2);
        REQUIRE(stock.kernels == "");
        const errors stock_errors = errors_of(stock.w, stock.x, stock.y, s.K, s.N);
        for (const int n_threads : {1, 2, 3}) {
            CAPTURE(n_threads);
            kernel_library library;
            const product  ours = multiply(s.K, s.N, s.x, n_threads);
            CHECK(ours.kernels == "cpu.mul_mat_f32");
            const errors our_errors = errors_of(ours.w, ours.x, ours.y, s.K, s.N);
            CHECK(our_errors.rms <= std::fmax(2 * stock_errors.rms, 1e-7));
            CHECK(our_errors.worst <= 3e-7);
        }
    }
}

TEST_CASE("GEMM-1: a graph computed directly is served too") {
    kernel_library library;
    const product  ours = multiply(40, 24, {40, 16}, 2, true);
    CHECK(ours.kernels == "cpu.mul_mat_f32");
    CHECK(worst_error(ours.w, ours.x, ours.y, 40, 24) < 1e-6);
}

TEST_CASE("GEMM-1: what is not F32 rows over a kept weight is refused with a reason, and ggml's own kernel gives the result") {
    kernel_library library;
    enum kind {
        input_weight,
        computed_weight,
        view_weight,
        batched_weight,
        half_weight,
        one_row
    };
    for (const kind k : {input_weight, computed_weight, view_weight, batched_weight, half_weight, one_row}) {
        CAPTURE(static_cast<int>(k));
        model         b;
        const int64_t K = 32, N = 24, M = k == one_row ? 1 : 20;
        const int64_t w2   = k == batched_weight ? 2 : 1;
        ggml_tensor * leaf = k == input_weight ? b.typed_input(F32, {K, N}) : b.weight(F32, {K, k == view_weight ? 3 * N : N, w2});
        ggml_tensor * w    = leaf;
        if (k == computed_weight) {
            w = b.g.ggml_scale(b.ctx, leaf, 1.0f);
        } else if (k == view_weight) {
            w = b.g.ggml_view_2d(b.ctx, leaf, K, N, leaf->nb[1], static_cast<size_t>(N) * leaf->nb[1]);
        } else if (k == half_weight) {
            w = ops().ggml_cast(b.ctx, leaf, F16);
        }
        ggml_tensor * x = b.typed_input(F32, {K, M, w2});
        ggml_tensor * y = b.g.base.ggml_mul_mat(b.ctx, w, x);
        b.expand(y);
        b.allocate();
        const auto wv = random_floats(static_cast<size_t>(K * leaf->ne[1] * w2), 5), xv = random_floats(static_cast<size_t>(K * M * w2), 6);
        b.put(leaf, wv);
        b.put(x, xv);
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "");
        CHECK(b.refusals().find(k == one_row ? "rows" : k == batched_weight ? "matrix"
                                                    : k == half_weight      ? "F32"
                                                                            : "weight") != std::string::npos);
        const auto               first = static_cast<std::ptrdiff_t>(k == view_weight ? K * N : 0);
        const std::vector<float> used(wv.begin() + first, wv.begin() + first + K * N), x0(xv.begin(), xv.begin() + K * M);
        auto                     yv = b.get(y);
        yv.resize(static_cast<size_t>(N * M));
        CHECK(worst_error(used, x0, yv, K, N) < (k == half_weight ? 1e-3 : 1e-6));
    }
}

TEST_CASE("GEMM-1: Q, K and V as offset views of one fused activation, permuted and padded inputs: right, whichever kernel runs") {
    kernel_library library;
    const int64_t  D = 32, N = 24, L = 20;
    for (const int part : {0, 1, 2}) {
        CAPTURE(part);
        model         b;
        ggml_tensor * w   = b.weight(F32, {D, N});
        ggml_tensor * qkv = b.typed_input(F32, {3 * D, L});
        ggml_tensor * x   = b.g.ggml_view_2d(b.ctx, qkv, D, L, qkv->nb[1], static_cast<size_t>(part * D) * sizeof(float));
        ggml_tensor * y   = b.g.base.ggml_mul_mat(b.ctx, w, x);
        b.expand(y);
        b.allocate();
        const auto wv = random_floats(static_cast<size_t>(D * N), 7), all = random_floats(static_cast<size_t>(3 * D * L), 8);
        b.put(w, wv);
        b.put(qkv, all);
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "cpu.mul_mat_f32");
        std::vector<float> xv;
        for (int64_t i = 0; i < L; ++i) {
            const auto row = all.begin() + (3 * i + part) * D;
            xv.insert(xv.end(), row, row + D);
        }
        CHECK(worst_error(wv, xv, b.get(y), D, N) < 1e-6);
    }
}

TEST_CASE("GEMM-1: [K, L, H] permuted from [K, H, L], rows of two distances: a plane at a time, of any number of rows") {
    kernel_library library;
    const int64_t  H = 3, N = 24;
    for (const int64_t K : {32, 768, 1600}) {
        for (const int64_t L : {20, 127, 139, 140, 141, 142, 143, 144, 145, 300}) {
            CAPTURE(K);
            CAPTURE(L);
            model         b;
            ggml_tensor * w    = b.weight(F32, {K, N});
            ggml_tensor * base = b.typed_input(F32, {K, H, L});
            ggml_tensor * y    = b.g.base.ggml_mul_mat(b.ctx, w, b.g.ggml_permute(b.ctx, base, 0, 2, 1, 3));
            b.expand(y);
            b.allocate();
            const auto wv = random_floats(static_cast<size_t>(K * N), 9), all = random_floats(static_cast<size_t>(K * H * L), 10);
            b.put(w, wv);
            b.put(base, all);
            REQUIRE(b.compute() == 0);
            CHECK(b.kernels() == "cpu.mul_mat_f32");
            std::vector<float> xv;
            for (int64_t h = 0; h < H; ++h) {
                for (int64_t i = 0; i < L; ++i) {
                    const auto row = all.begin() + (i * H + h) * K;
                    xv.insert(xv.end(), row, row + K);
                }
            }
            CHECK(worst_error(wv, xv, b.get(y), K, N) < 1e-6);
        }
    }
}

TEST_CASE("GEMM-1: rows with infinities and NaN stay what ggml makes of them, and spoil no other row") {
    const int64_t K = 40, N = 24, M = 16;
    const auto    wv                   = random_floats(static_cast<size_t>(K * N), 11);
    auto          xv                   = random_floats(static_cast<size_t>(K * M), 12);
    xv[3]                              = INFINITY;
    xv[static_cast<size_t>(2 * K)]     = NAN;
    xv[static_cast<size_t>(3 * K)]     = INFINITY;
    xv[static_cast<size_t>(3 * K + 1)] = -INFINITY;
    for (int64_t k = 0; k < K; ++k) {
        xv[static_cast<size_t>(5 * K + k)] = 0;
    }
    const auto compute = [&] {
        model         b;
        ggml_tensor * w = b.weight(F32, {K, N});
        ggml_tensor * x = b.typed_input(F32, {K, M});
        ggml_tensor * y = b.g.base.ggml_mul_mat(b.ctx, w, x);
        b.expand(y);
        b.allocate();
        b.put(w, wv);
        b.put(x, xv);
        REQUIRE(b.compute() == 0);
        return b.get(y);
    };
    const auto     stock = compute();
    kernel_library library;
    const auto     ours = compute();
    for (size_t i = 0; i < stock.size(); ++i) {
        CAPTURE(i);
        REQUIRE(std::isnan(ours[i]) == std::isnan(stock[i]));
        REQUIRE(std::isinf(ours[i]) == std::isinf(stock[i]));
        if (std::isfinite(stock[i])) {
            REQUIRE(ours[i] == doctest::Approx(stock[i]).epsilon(1e-4).scale(1));
        }
    }
    for (size_t n = 0; n < static_cast<size_t>(N); ++n) {
        CHECK(ours[5 * static_cast<size_t>(N) + n] == 0.0f);
    }
}

TEST_CASE("CACHE-1: a weight that is set anew, whole or one row of it, is packed again") {
    kernel_library library;
    const int64_t  K = 384, N = 400;
    weighed        p(K, N, 16, 13);
    for (int round = 0; round < 6; ++round) {
        CAPTURE(round);
        if (round == 1) {
            p.wv = random_floats(static_cast<size_t>(K * N), 15);
        } else if (round > 1) {
            const auto row = random_floats(static_cast<size_t>(K), static_cast<uint32_t>(20 + round));
            std::copy(row.begin(), row.end(), p.wv.begin() + (round == 2 ? 0 : round == 3 ? N - 1
                                                                                          : 130 * (round - 3)) *
                                                                 K);
        }
        p.set();
        CHECK(p.error() < 1e-6);
    }
}

TEST_CASE("CACHE-1: a small weight may change in a single element") {
    kernel_library library;
    weighed        p(40, 24, 8, 16);
    for (size_t i = 0; i < p.wv.size(); i += 97) {
        p.wv[i] += 1.0f;
        p.set();
        REQUIRE(p.error() < 1e-6);
    }
}

TEST_CASE("CACHE-1: whatever columns change, and by whatever bits, a changed weight is packed again") {
    const struct {
        int64_t K, N;
    } shapes[] = {{4096, 16}, {2048, 32}, {768, 11}, {1000, 3}, {40, 24}, {384, 384}};
    for (const auto & shape : shapes) {
        const int64_t K = shape.K, N = shape.N;
        CAPTURE(K);
        CAPTURE(N);
        kernel_library library;
        weighed        p(K, N, 16, 18);
        const auto     change = [&](int64_t first, int64_t step, const auto & f) {
            for (int64_t n = 0; n < N; ++n) {
                for (int64_t k = first; k < K; k += step) {
                    float & v = p.wv[static_cast<size_t>(n * K + k)];
                    v         = f(v);
                }
            }
        };
        const auto computes = [&] {
            p.set();
            CHECK(p.error() < 1e-6);
        };
        computes();
        change(1, 2, [](float v) { return -v; }); // the highest bit of each word of eight bytes
        computes();
        change(0, 2, [](float v) { return -v; });
        computes();
        for (int64_t first = 0; first < K; first += 16) { // 64 bytes of each row
            for (int64_t k = first; k < std::min(first + 16, K); ++k) {
                change(k, K, [](float v) { return v + 1.0f; });
            }
            computes();
        }
    }
}

TEST_CASE("CACHE-1: a single element of a large weight may change where it is reported") {
    kernel_library library;
    const int64_t  K = 1024, N = 512;
    weighed        p(K, N, 8, 20);
    p.set();
    CHECK(p.error() < 1e-6);
    for (const int64_t i : {int64_t{5}, 3 * K + 700, K * N - 1}) {
        CAPTURE(i);
        p.wv[static_cast<size_t>(i)] += 1000.0f;
        p.set();
        ggml_ext_weights_changed(static_cast<const float *>(p.w->data) + i, sizeof(float));
        CHECK(p.error() < 1e-6);
    }
}

TEST_CASE("CACHE-1: a column that a node of a graph writes into a weight is seen: before the product, behind it, between two, in another graph") {
    kernel_library library;
    const int64_t  K = 4096, N = 128, M = 8, column = 77; // more columns than the samples of a part's rows reach
    enum place {
        before,
        behind,
        between,
        elsewhere
    };
    for (const bool direct : {false, true}) {
        for (const place at : {before, behind, between, elsewhere}) {
            CAPTURE(direct);
            CAPTURE(static_cast<int>(at));
            model         b(2, direct), other(1, true);
            ggml_tensor * w      = b.weight(F32, {K, N});
            ggml_tensor * x      = b.typed_input(F32, {K, M});
            const auto    writer = [&](model & of) {
                ggml_tensor * values = of.typed_input(F32, {1, N});
                ggml_tensor * write  = of.g.ggml_cpy(of.ctx, values, of.g.ggml_view_2d(of.ctx, w, 1, N, w->nb[1], column * sizeof(float)));
                of.g.base.ggml_build_forward_expand(of.graph, write);
                return values;
            };
            std::vector<ggml_tensor *> y;
            const auto                 product = [&] {
                y.push_back(b.g.base.ggml_mul_mat(b.ctx, w, x));
                b.expand(y.back());
            };
            ggml_tensor * values = at == before ? writer(b) : nullptr;
            product();
            values = at == behind || at == between ? writer(b) : values;
            if (at == between) {
                product();
            }
            b.allocate();
            if (at == elsewhere) {
                values = writer(other);
                other.allocate();
            }
            std::vector<float> wv = random_floats(static_cast<size_t>(K * N), 31);
            b.put(w, wv);
            for (uint32_t round = 0; round < 3; ++round) {
                CAPTURE(round);
                const auto xv = random_floats(static_cast<size_t>(K * M), 32), vv = random_floats(static_cast<size_t>(N), 33 + round);
                const auto written = [&] {
                    std::vector<float> after = wv;
                    for (int64_t n = 0; n < N; ++n) {
                        after[static_cast<size_t>(n * K + column)] = vv[static_cast<size_t>(n)];
                    }
                    return after;
                }();
                b.put(x, xv);
                other.put(values, vv);
                REQUIRE(b.compute() == 0);
                CHECK(worst_error(at == before ? written : wv, xv, b.get(y[0]), K, N) < 3e-7);
                if (at == between) {
                    CHECK(worst_error(written, xv, b.get(y[1]), K, N) < 3e-7);
                }
                if (at == elsewhere) {
                    REQUIRE(other.compute() == 0);
                }
                wv = written;
            }
            CHECK(b.kernels() == (at == between ? "cpu.mul_mat_f32,cpu.mul_mat_f32" : "cpu.mul_mat_f32"));
        }
    }
}
