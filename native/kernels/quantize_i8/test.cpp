#include "ggml-ext-kernels/quantize_i8.h"
#include "reference.h"
#include "support.h"

#include <doctest/doctest.h>

namespace {

struct packed {
    std::vector<char> data;
    int64_t           M, K;

    const int8_t * row(int64_t m) const { return reinterpret_cast<const int8_t *>(data.data()) + m * K; }

    float scale(int64_t m) const {
        float s;
        std::memcpy(&s, data.data() + ggml_ext_cpu_convrot_scale_offset(M, K) + static_cast<size_t>(m) * 4, 4);
        return s;
    }
};

packed quantize(const std::vector<float> & x, int64_t M, int64_t K, int64_t group, int64_t x_pad = 0, int nth = 1) {
    packed                              p    = {std::vector<char>(ggml_ext_cpu_convrot_size(M, K) + 16, 0x55), M, K};
    const ggml_ext_cpu_quantize_i8_args args = {
        M,
        K,
        group,
        ggml_ext_cpu_convrot_padded_rows(M),
        x.data(),
        static_cast<size_t>(K + x_pad) * 4,
        reinterpret_cast<int8_t *>(p.data.data()),
        static_cast<size_t>(K),
        reinterpret_cast<float *>(p.data.data() + ggml_ext_cpu_convrot_scale_offset(M, K))};
    REQUIRE(test::on_threads(nth, [&](int ith) {
                std::vector<char> scratch(ggml_ext_cpu_quantize_i8_scratch_size(K, group));
                return ggml_ext_cpu_quantize_i8(&args, scratch.data(), scratch.size(), ith, nth);
            }) == GGML_EXT_CPU_OK);
    for (size_t i = 0; i < 16; i++) {
        CHECK(p.data[ggml_ext_cpu_convrot_size(M, K) + i] == 0x55);
    }
    for (int64_t m = M; m < ggml_ext_cpu_convrot_padded_rows(M); m++) {
        for (int64_t k = 0; k < K; k++) {
            REQUIRE(p.row(m)[k] == 0);
        }
    }
    return p;
}

// Equal to the double reference, but where the value is so near a tie that float rounding may decide.
void check(const std::vector<float> & x, int64_t M, int64_t K, int64_t group, int64_t x_pad = 0, int nth = 1) {
    CAPTURE(M);
    CAPTURE(K);
    CAPTURE(group);
    const packed p   = quantize(x, M, K, group, x_pad, nth);
    int64_t      bad = 0, near_ties = 0;
    for (int64_t m = 0; m < M; m++) {
        const std::vector<double> y     = reference::rotate(&x[static_cast<size_t>(m * (K + x_pad))], K, group);
        const double              scale = reference::largest(y) / 127;
        CHECK(p.scale(m) == doctest::Approx(scale).epsilon(1e-6));
        for (int64_t k = 0; k < K; k++) {
            const double v    = y[static_cast<size_t>(k)] / scale;
            const bool   near = std::fabs(std::fabs(v - std::floor(v)) - 0.5) < 2e-4;
            near_ties += near;
            bad += near ? std::fabs(p.row(m)[k] - v) > 0.501 : p.row(m)[k] != std::nearbyint(v);
        }
    }
    CHECK(bad == 0);
    CHECK(near_ties < M * K / 100 + 5);
}

} // namespace

TEST_CASE("I8-2: rotation, scale and rounding for every group size equal the dense double reference") {
    for (int64_t group : {1, 4, 16, 64, 256}) {
        for (int64_t groups : {1, 2, 3, 5}) {
            const int64_t K = group * groups;
            check(test::uniform(static_cast<size_t>(6 * K), static_cast<unsigned>(K)), 6, K, group);
        }
    }
}

TEST_CASE("I8-2: K that is no multiple of a vector, and the long rows of users") {
    for (int64_t K : {1, 2, 3, 5, 7, 9, 15, 17, 31, 33, 63, 65, 100, 127}) {
        check(test::uniform(static_cast<size_t>(3 * K), 5), 3, K, 1);
        check(test::uniform(static_cast<size_t>(3 * 4 * K), 6), 3, 4 * K, 4);
    }
    for (int64_t K : {3840, 10240, 28672}) {
        check(test::uniform(static_cast<size_t>(2 * K), 7), 2, K, 256);
    }
}

TEST_CASE("I8-2: a row of any number of groups, alone, and rows longer than what is rotated at a time") {
    for (int64_t group : {4, 16}) {
        for (int64_t groups = 1; groups <= 33; groups++) {
            check(test::uniform(static_cast<size_t>(group * groups), static_cast<unsigned>(groups)), 1, group * groups, group);
        }
    }
    for (int64_t group : {4, 16, 64, 256}) {
        check(test::uniform(static_cast<size_t>(3 * (2048 + group)), 10), 3, 2048 + group, group);
    }
}

TEST_CASE("I8-2: a row's bytes and scale depend on nothing but the row") {
    for (int64_t group : {1, 4, 16, 64, 256}) {
        const int64_t      M = 7, K = 768;
        std::vector<float> x = test::uniform(static_cast<size_t>(M * K), 11);
        x[2 * 768 + 5]       = NAN;
        for (size_t i = 0; i < 768; i++) {
            x[3 * 768 + i] = 0.0f;
            x[5 * 768 + i] *= 1e-39f;
        }
        const packed together = quantize(x, M, K, group, 0, 2);
        for (int64_t m = 0; m < M; m++) {
            const std::vector<float> row(x.begin() + m * K, x.begin() + (m + 1) * K);
            const packed             alone = quantize(row, 1, K, group);
            CAPTURE(group);
            CAPTURE(m);
            CHECK(std::memcmp(alone.row(0), together.row(m), static_cast<size_t>(K)) == 0);
            CHECK((alone.scale(0) == together.scale(m) || (m == 2 && std::isnan(alone.scale(0)) && std::isnan(together.scale(m)))));
        }
    }
}

TEST_CASE("I8-2: the largest magnitude of a row is 127, whatever its size") {
    for (int exponent = -120; exponent < 127; exponent++) { // from scales whose reciprocal is just finite
        for (float mantissa : {1.0f, 1.17f, 1.5f, 1.7f, 1.9999999f}) {
            const float        largest = std::ldexp(mantissa, exponent);
            std::vector<float> x       = {largest, -largest, largest / 4, 0};
            const packed       p       = quantize(x, 1, 4, 1);
            CAPTURE(exponent);
            CAPTURE(mantissa);
            CHECK(std::fabs(p.scale(0) / (largest / 127.0) - 1) < 1e-6);
            CHECK(p.row(0)[0] == 127);
            CHECK(p.row(0)[1] == -127);
            CHECK(p.row(0)[2] == 32);
            CHECK(p.row(0)[3] == 0);
            // H4 times (v, 0, 0, 0) is (v, v, v, -v) / 2
            x              = {largest, 0, 0, 0};
            const packed r = quantize(x, 1, 4, 4);
            for (int i = 0; i < 4; i++) {
                CHECK(r.row(0)[i] == (i < 3 ? 127 : -127));
            }
        }
    }
}

TEST_CASE("I8-2: strided rows, row counts around the padding, several threads") {
    for (int64_t M : {1, 2, 3, 4, 5, 9}) {
        for (int nth : {1, 2, 3}) {
            check(test::uniform(static_cast<size_t>(M * (192 + 5)), 8), M, 192, 64, 5, nth);
        }
    }
}

TEST_CASE("I8-2: the packed size is rows padded to four, then the scales") {
    CHECK(ggml_ext_cpu_convrot_padded_rows(1) == 4);
    CHECK(ggml_ext_cpu_convrot_padded_rows(4) == 4);
    CHECK(ggml_ext_cpu_convrot_padded_rows(5) == 8);
    CHECK(ggml_ext_cpu_convrot_scale_offset(5, 64) == 8 * 64);
    CHECK(ggml_ext_cpu_convrot_size(5, 64) == 8 * 64 + 5 * 4);
}

TEST_CASE("I8-2: rounding is half to even") {
    // largest magnitude 127: scale 1, values stay what they are
    const std::vector<float> x   = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, 3.4999f};
    const int8_t             q[] = {127, 0, 2, 2, 0, -2, -2, 126, -126, 3};
    const packed             p   = quantize(x, 1, 10, 1);
    CHECK(p.scale(0) == 1.0f);
    for (int i = 0; i < 10; i++) {
        CHECK(p.row(0)[i] == q[i]);
    }
}

TEST_CASE("I8-2: a zero row, one outlier, tiny and huge rows") {
    for (int64_t group : {1, 4, 16, 64}) {
        std::vector<float> x(5 * 64, 0.0f);
        x[64 + 3] = 1e30f; // row 1: an outlier alone
        for (size_t i = 0; i < 64; i++) {
            x[128 + i] = static_cast<float>(i) * 1e-40f;                       // row 2: subnormal
            x[192 + i] = static_cast<float>(static_cast<int>(i) - 30) * 1e36f; // row 3: near overflow, not over
            x[256 + i] = i == 5 ? 1e-45f : 0.0f;                               // row 4: the scale rounds to zero
        }
        const packed p = quantize(x, 5, 64, group);
        CHECK(p.scale(0) == 0.0f);
        CHECK(p.scale(4) == 0.0f);
        for (int64_t m : {0, 4}) {
            for (int64_t k = 0; k < 64; k++) {
                CHECK(p.row(m)[k] == 0);
            }
        }
        for (int64_t m : {1, 2, 3}) {
            const auto   y     = reference::rotate(&x[static_cast<size_t>(m * 64)], 64, group);
            const double scale = reference::largest(y) / 127;
            CAPTURE(m);
            CHECK(std::fabs(p.scale(m) - scale) <= 1e-6 * scale + 1e-45);
            for (int64_t k = 0; k < 64; k++) {
                CHECK(std::fabs(p.row(m)[k] - y[static_cast<size_t>(k)] / p.scale(m)) < 0.51);
            }
        }
    }
}

TEST_CASE("I8-2: a row with NaN or an infinity has scale NaN and zeros; its neighbours do not notice") {
    for (int64_t group : {1, 4, 16, 64, 256}) {
        for (float poison : {NAN, INFINITY, -INFINITY, -NAN}) {
            std::vector<float> x = test::uniform(3 * 256, 9);
            x[256 + 77]          = poison;
            const packed p       = quantize(x, 3, 256, group);
            CHECK(std::isnan(p.scale(1)));
            CHECK(std::isfinite(p.scale(0)));
            CHECK(std::isfinite(p.scale(2)));
            for (int64_t k = 0; k < 256; k++) {
                CHECK(p.row(1)[k] == 0);
            }
        }
    }
}

TEST_CASE("I8-2: bad input is a status") {
    const size_t                        size = ggml_ext_cpu_quantize_i8_scratch_size(256, 64);
    std::vector<char>                   scratch(size);
    std::vector<float>                  x(256), scale(1);
    std::vector<int8_t>                 q(4 * 256);
    const ggml_ext_cpu_quantize_i8_args good = {1, 256, 64, 4, x.data(), 1024, q.data(), 256, scale.data()};

    auto with = [&](auto change) {
        ggml_ext_cpu_quantize_i8_args a = good;
        change(a);
        return ggml_ext_cpu_quantize_i8(&a, scratch.data(), size, 0, 1);
    };
    CHECK(with([](auto &) {}) == GGML_EXT_CPU_OK);
    CHECK(with([](auto & a) { a.group = 8; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = 100; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = int64_t{1} << 62, a.x_stride = 0; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.padded_rows = 0; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.q_stride = 255; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.scale = nullptr; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.scale = test::off_by_one(a.scale); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x = test::off_by_one(a.x); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_quantize_i8(&good, test::off_by_one(scratch.data()), size, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_quantize_i8(&good, scratch.data(), size - 1, 0, 1) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(ggml_ext_cpu_quantize_i8(&good, nullptr, size, 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
}
