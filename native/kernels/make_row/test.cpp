#include "ggml-ext-kernels/make_row.h"
#include "reference.h"
#include "support.h"

#include <doctest/doctest.h>

namespace {

const int64_t SIZES[] = {1, 2, 7, 8, 9, 15, 16, 17, 33, 384, 1000};

void check_row(const ggml_ext_cpu_row & row, int64_t n) {
    CAPTURE(row.kind);
    CAPTURE(n);
    std::vector<float> dst(static_cast<size_t>(n) + 1, test::GUARD);
    REQUIRE(ggml_ext_cpu_make_row(&row, n, dst.data()) == GGML_EXT_CPU_OK);
    const auto expected = reference::make_row(row, n);
    double     largest  = 0; // of a row, in a norm's terms; sums of such rows are rounded by these
    for (double v : expected) {
        largest = std::fmax(largest, std::fabs(v));
    }
    int64_t bad = 0;
    for (size_t i = 0; i < expected.size(); i++) {
        const double scale = row.kind >= GGML_EXT_CPU_ROW_NORM ? largest : std::fabs(expected[i]) + std::fabs(row.offset);
        bad += !(std::fabs(dst[i] - expected[i]) <= 2e-6 * scale + 1e-37);
    }
    CHECK(bad == 0);
    CHECK(dst.back() == test::GUARD);
}

} // namespace

TEST_CASE("ROT-1: scaled, gated and GELU rows equal the double definition for every tail") {
    for (int64_t n : SIZES) {
        const auto x = test::uniform(static_cast<size_t>(n), 1, -20, 20), y = test::uniform(static_cast<size_t>(n), 2, -3, 3);
        for (int kind = GGML_EXT_CPU_ROW_SCALE; kind <= GGML_EXT_CPU_ROW_SIGMOID_MUL; kind++) {
            check_row({kind, x.data(), y.data(), 0.37f, -1.25f, 0, nullptr, nullptr, nullptr}, n);
        }
    }
}

TEST_CASE("ROT-1: normed rows, with and without weight, modulation and shift, equal the double definition") {
    for (int64_t n : SIZES) {
        const size_t size = static_cast<size_t>(n);
        const auto   x = test::uniform(size, 1, -3, 5), w = test::uniform(size, 2, 0.5f, 2), m = test::uniform(size, 3, -1, 1),
                   s = test::uniform(size, 4, -2, 2);
        for (int kind : {GGML_EXT_CPU_ROW_NORM, GGML_EXT_CPU_ROW_RMS_NORM}) {
            if (n <= 2 && kind == GGML_EXT_CPU_ROW_NORM) {
                continue; // of one or two values a mean leaves nothing but its own rounding
            }
            for (int with = 0; with < 8; with++) {
                check_row({kind, x.data(), nullptr, 0, 0, 1e-6f, with & 1 ? w.data() : nullptr, with & 2 ? m.data() : nullptr,
                           with & 4 ? s.data() : nullptr},
                          n);
            }
        }
    }
}

TEST_CASE("ROT-1: far ends of the gates are zero or the factor itself; NaN and infinity are passed on") {
    const float      x[] = {-200, 200, -INFINITY, INFINITY, NAN, 0}, y[] = {3, 3, 3, 3, 3, 3};
    float            dst[6];
    ggml_ext_cpu_row row = {GGML_EXT_CPU_ROW_SIGMOID_MUL, x, y, 0, 0, 0, nullptr, nullptr, nullptr};
    REQUIRE(ggml_ext_cpu_make_row(&row, 6, dst) == GGML_EXT_CPU_OK);
    CHECK(std::fabs(dst[0]) < 1e-37f);
    CHECK(dst[1] == 3.0f);
    CHECK(std::fabs(dst[2]) < 1e-37f);
    CHECK(dst[3] == 3.0f);
    CHECK(std::isnan(dst[4]));
    CHECK(dst[5] == 1.5f);
    row.kind = GGML_EXT_CPU_ROW_SILU_MUL;
    REQUIRE(ggml_ext_cpu_make_row(&row, 6, dst) == GGML_EXT_CPU_OK);
    CHECK(std::fabs(dst[0]) < 1e-35f);
    CHECK(dst[1] == 600.0f);
    CHECK(dst[3] == INFINITY);
    CHECK(std::isnan(dst[4]));
    CHECK(dst[5] == 0.0f);
}

TEST_CASE("make_row: bad input is a status") {
    float            x[4] = {}, dst[4];
    ggml_ext_cpu_row row  = {GGML_EXT_CPU_ROW_SILU_MUL, x, nullptr, 0, 0, 0, nullptr, nullptr, nullptr};
    CHECK(ggml_ext_cpu_make_row(&row, 4, dst) == GGML_EXT_CPU_INVALID_ARGUMENT);
    row.y = x;
    CHECK(ggml_ext_cpu_make_row(&row, 4, dst) == GGML_EXT_CPU_OK);
    CHECK(ggml_ext_cpu_make_row(&row, 0, dst) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_make_row(&row, 3, test::off_by_one(dst)) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_make_row(nullptr, 4, dst) == GGML_EXT_CPU_INVALID_ARGUMENT);
    row.kind = 6;
    CHECK(ggml_ext_cpu_make_row(&row, 4, dst) == GGML_EXT_CPU_INVALID_ARGUMENT);
    row.kind = GGML_EXT_CPU_ROW_RMS_NORM;
    row.eps  = -1;
    CHECK(ggml_ext_cpu_make_row(&row, 4, dst) == GGML_EXT_CPU_INVALID_ARGUMENT);
}
