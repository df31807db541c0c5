#include "gelu_reference.h"
#include "ggml-ext-kernels/rows.h"
#include "reference.h"
#include "support.h"

#include <doctest/doctest.h>

namespace {

const int64_t SIZES[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 384, 1000};

std::vector<double> widened(const float * x, int64_t n) {
    return std::vector<double>(x, x + n);
}

void check_layer_norm(int64_t n, bool residual, bool affine, bool in_place, int nth) {
    CAPTURE(n);
    const int64_t            rows = 5, pad = 3;
    const std::vector<float> x      = test::uniform(static_cast<size_t>(rows * (n + pad)), 1, -3, 5),
                             r      = test::uniform(static_cast<size_t>(rows * n), 2);
    const std::vector<float> weight = test::uniform(static_cast<size_t>(n), 3),
                             bias   = test::uniform(static_cast<size_t>(n), 4);
    test::padded dst(rows, n, pad);
    if (in_place) {
        for (int64_t i = 0; i < rows * n; i++) {
            dst.data[static_cast<size_t>(i / n * dst.stride + i % n)] =
                x[static_cast<size_t>(i / n * (n + pad) + i % n)];
        }
    }
    const ggml_ext_cpu_layer_norm_args args = {rows,
                                               n,
                                               in_place ? dst.data.data() : x.data(),
                                               dst.stride_bytes(),
                                               residual ? r.data() : nullptr,
                                               static_cast<size_t>(n) * 4,
                                               affine ? weight.data() : nullptr,
                                               affine ? bias.data() : nullptr,
                                               1e-5f,
                                               dst.data.data(),
                                               dst.stride_bytes()};
    REQUIRE(test::on_threads(nth, [&](int ith) { return ggml_ext_cpu_layer_norm(&args, ith, nth); }) ==
            GGML_EXT_CPU_OK);
    int64_t bad = 0;
    for (int64_t m = 0; m < rows; m++) {
        std::vector<double> y = widened(&x[static_cast<size_t>(m * (n + pad))], n);
        for (int64_t i = 0; residual && i < n; i++) {
            y[static_cast<size_t>(i)] += r[static_cast<size_t>(m * n + i)];
        }
        const auto expected =
            reference::layer_norm(y, affine ? weight.data() : nullptr, affine ? bias.data() : nullptr, 1e-5f);
        double spread = 0; // rounding of y is magnified where a row hardly varies
        for (double v : y) {
            spread = std::fmax(spread, std::fabs(v - y[0]));
        }
        const double tolerance = 3e-6 + 3e-6 / std::fmax(spread, 3e-3);
        for (int64_t i = 0; i < n; i++) {
            bad += !(std::fabs(dst(m, i) - expected[static_cast<size_t>(i)]) <= tolerance);
        }
    }
    CHECK(bad == 0);
    CHECK(dst.guards_intact());
}

} // namespace

TEST_CASE("LayerNorm with residual, weight and bias equals the double definition for every tail") {
    for (int64_t n : SIZES) {
        check_layer_norm(n, false, false, false, 1);
        check_layer_norm(n, true, true, false, 2);
        check_layer_norm(n, true, true, true, 3);
        check_layer_norm(n, false, true, true, 7);
    }
}

TEST_CASE("LayerNorm keeps its accuracy where the mean dwarfs the spread") {
    std::vector<float>                 x    = test::uniform(384, 1, 999.0f, 1001.0f), dst(384);
    const ggml_ext_cpu_layer_norm_args args = {1, 384, x.data(), 0, nullptr, 0,
                                               nullptr, nullptr, 1e-12f, dst.data(), 0};
    REQUIRE(ggml_ext_cpu_layer_norm(&args, 0, 1) == GGML_EXT_CPU_OK);
    const auto expected = reference::layer_norm(widened(x.data(), 384), nullptr, nullptr, 1e-12f);
    for (size_t i = 0; i < 384; i++) {
        CHECK(std::fabs(dst[i] - expected[i]) < 5e-4); // the mean itself is good to about half an ulp of 1000
    }
}

TEST_CASE("softmax with scale and mask equals the double definition for every tail") {
    for (int64_t n : SIZES) {
        CAPTURE(n);
        const int64_t            rows = 6, pad = 2;
        const std::vector<float> x    = test::uniform(static_cast<size_t>(rows * n), 1, -30, 30),
                                 mask = test::uniform(static_cast<size_t>(3 * n), 2, -5, 0);
        for (bool masked : {false, true}) {
            test::padded                    dst(rows, n, pad);
            const ggml_ext_cpu_softmax_args args = {rows,
                                                    n,
                                                    x.data(),
                                                    static_cast<size_t>(n) * 4,
                                                    masked ? mask.data() : nullptr,
                                                    static_cast<size_t>(n) * 4,
                                                    3,
                                                    0.3f,
                                                    dst.data.data(),
                                                    dst.stride_bytes()};
            REQUIRE(test::on_threads(2, [&](int ith) { return ggml_ext_cpu_softmax(&args, ith, 2); }) ==
                    GGML_EXT_CPU_OK);
            int64_t bad = 0;
            for (int64_t m = 0; m < rows; m++) {
                std::vector<double> y;
                for (int64_t i = 0; i < n; i++) {
                    y.push_back(static_cast<double>(x[static_cast<size_t>(m * n + i)]) * 0.3f +
                                (masked ? mask[static_cast<size_t>(m % 3 * n + i)] : 0.0f));
                }
                const auto expected = reference::softmax(y);
                for (int64_t i = 0; i < n; i++) {
                    const double e = expected[static_cast<size_t>(i)];
                    bad += !(std::fabs(dst(m, i) - e) <= 3e-6 * e + 1e-38);
                }
            }
            CHECK(bad == 0);
            CHECK(dst.guards_intact());
        }
    }
}

TEST_CASE("softmax: scores however far below the largest give what the double definition gives, or zero") {
    const int64_t      rows = 3000, n = 9;
    std::vector<float> x(static_cast<size_t>(rows * n)), dst(x.size());
    for (int64_t m = 0; m < rows; m++) {
        for (int64_t i = 0; i < n; i++) {
            x[static_cast<size_t>(m * n + i)] = i == 4 ? 3.0f : 3.0f - static_cast<float>(m) * 0.5f - static_cast<float>(i);
        }
    }
    const ggml_ext_cpu_softmax_args args = {rows, n, x.data(), n * 4, nullptr, 0, 1, 1.0f, dst.data(), n * 4};
    REQUIRE(ggml_ext_cpu_softmax(&args, 0, 1) == GGML_EXT_CPU_OK);
    int64_t bad = 0;
    for (int64_t m = 0; m < rows; m++) {
        const auto row      = x.begin() + m * n;
        const auto expected = reference::softmax(std::vector<double>(row, row + n));
        for (int64_t i = 0; i < n; i++) {
            const double e = expected[static_cast<size_t>(i)];
            bad += !(std::fabs(dst[static_cast<size_t>(m * n + i)] - e) <= 3e-6 * e + 2e-38);
        }
    }
    CHECK(bad == 0);
}

TEST_CASE("softmax: masked positions are exactly zero, a wholly masked row or a NaN gives NaN") {
    const float              inf = INFINITY;
    const std::vector<float> x   = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    std::vector<float>       mask(11, 0.0f), dst(11);
    mask[10] = mask[3]             = -inf;
    ggml_ext_cpu_softmax_args args = {1, 11, x.data(), 0, mask.data(), 0, 1, 1.0f, dst.data(), 0};
    REQUIRE(ggml_ext_cpu_softmax(&args, 0, 1) == GGML_EXT_CPU_OK);
    CHECK(dst[10] == 0.0f);
    CHECK(dst[3] == 0.0f);
    double total = 0;
    for (float f : dst) {
        total += f;
    }
    CHECK(total == doctest::Approx(1.0).epsilon(1e-6));

    for (float & f : mask) {
        f = -inf;
    }
    REQUIRE(ggml_ext_cpu_softmax(&args, 0, 1) == GGML_EXT_CPU_OK);
    for (float f : dst) {
        CHECK(std::isnan(f));
    }
    std::vector<float> poisoned = x;
    poisoned[9]                 = NAN;
    args.x                      = poisoned.data();
    args.mask                   = nullptr;
    REQUIRE(ggml_ext_cpu_softmax(&args, 0, 1) == GGML_EXT_CPU_OK);
    for (float f : dst) {
        CHECK(std::isnan(f));
    }
}

TEST_CASE("GELU erf: relative error below 1e-6 from -14 to 14, tails and special values") {
    std::vector<float> x;
    for (int i = -140000; i <= 140000; i++) {
        x.push_back(static_cast<float>(i) * 1e-4f + 1.7e-5f);
    }
    for (float f : {1e-20f, -1e-20f, 1e-38f, 0.0f, -0.0f, 20.0f, -20.0f, 1e30f, -1e30f, INFINITY}) {
        x.push_back(f);
    }
    x.push_back(NAN);
    std::vector<float> dst(x.size() + 1, test::GUARD);
    REQUIRE(test::on_threads(3, [&](int ith) {
                return ggml_ext_cpu_gelu_erf(static_cast<int64_t>(x.size()), x.data(), dst.data(), ith, 3);
            }) == GGML_EXT_CPU_OK);
    int64_t bad = 0;
    for (size_t i = 0; i + 2 < x.size(); i++) {
        const double expected = reference::gelu_erf(x[i]);
        bad += !(std::fabs(dst[i] - expected) <= 1e-6 * std::fabs(expected) + 2e-38);
    }
    CHECK(bad == 0);
    CHECK(dst[x.size() - 2] == INFINITY);
    CHECK(std::isnan(dst[x.size() - 1]));
    CHECK(dst[x.size()] == test::GUARD);
    for (int64_t n : SIZES) {
        std::vector<float> tail(static_cast<size_t>(n) + 1, test::GUARD);
        REQUIRE(ggml_ext_cpu_gelu_erf(n, x.data(), tail.data(), 0, 1) == GGML_EXT_CPU_OK);
        CHECK(tail[static_cast<size_t>(n) - 1] == dst[static_cast<size_t>(n) - 1]);
        CHECK(tail[static_cast<size_t>(n)] == test::GUARD);
    }
}

TEST_CASE("rows: bad input is a status") {
    float                        x[8] = {}, y[8] = {};
    ggml_ext_cpu_layer_norm_args norm = {2, 4, x, 16, nullptr, 0, nullptr, nullptr, 1e-5f, y, 16};
    CHECK(ggml_ext_cpu_layer_norm(&norm, 0, 1) == GGML_EXT_CPU_OK);
    CHECK(ggml_ext_cpu_layer_norm(&norm, 1, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    norm.eps = -1;
    CHECK(ggml_ext_cpu_layer_norm(&norm, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    ggml_ext_cpu_softmax_args soft = {2, 4, x, 16, x, 16, 1, 1.0f, y, 16};
    CHECK(ggml_ext_cpu_softmax(&soft, 0, 1) == GGML_EXT_CPU_OK);
    norm.eps = 0, norm.n = int64_t{1} << 62, norm.x_stride = norm.dst_stride = 0;
    CHECK(ggml_ext_cpu_layer_norm(&norm, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    norm.n = 4, norm.x_stride = norm.dst_stride = 16, norm.weight = test::off_by_one(x);
    CHECK(ggml_ext_cpu_layer_norm(&norm, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    soft.mask_stride = 18;
    CHECK(ggml_ext_cpu_softmax(&soft, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    soft.mask_stride = 16, soft.mask_rows = 0;
    CHECK(ggml_ext_cpu_softmax(&soft, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gelu_erf(0, x, y, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gelu_erf(8, nullptr, y, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gelu_erf(7, x, test::off_by_one(y), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
}
