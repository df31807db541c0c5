#include "packed_rows.h"

namespace {

struct layout {
    int64_t x_pad = 0, x_first = 0; // floats
};

test::packed_rows quantize(const std::vector<float> & x, int64_t M, int64_t K, int64_t group, layout l = {}) {
    const test::device<float>            dx(x);
    const test::device<char>             out(static_cast<int64_t>(ggml_ext_cuda_convrot_size(M, K)));
    const test::device<char>             workspace(static_cast<int64_t>(ggml_ext_cuda_quantize_i8_workspace_size(M, K)));
    const ggml_ext_cuda_quantize_i8_args args = {
        M,
        K,
        group,
        ggml_ext_cuda_convrot_padded_rows(M),
        dx.data() + l.x_first,
        static_cast<size_t>(K + l.x_pad) * 4,
        reinterpret_cast<int8_t *>(out.data()),
        static_cast<size_t>(K),
        reinterpret_cast<float *>(out.data() + ggml_ext_cuda_convrot_scale_offset(M, K))};
    const int status = ggml_ext_cuda_quantize_i8(&args, workspace.data(), workspace.bytes(), nullptr);
    REQUIRE_MESSAGE(status == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());
    workspace.get(); // its guards
    test::packed_rows p = {M, K, out.get()};
    CHECK(p.padding_is_zero());
    return p;
}

// Every `step`th row against the dense double reference.
void check(int64_t M, int64_t K, int64_t group, layout l = {}, int64_t step = 1) {
    CAPTURE(M);
    CAPTURE(K);
    CAPTURE(group);
    CAPTURE(l.x_pad);
    CAPTURE(l.x_first);
    const int64_t            stride = K + l.x_pad;
    const std::vector<float> x      = test::uniform(M * stride + l.x_first, static_cast<unsigned>(K + M));
    const auto               p      = quantize(x, M, K, group, l);
    int64_t                  bad    = 0;
    for (int64_t m = 0; m < M; m += step) {
        const float * row = &x[static_cast<size_t>(m * stride + l.x_first)];
        bad += !test::row_equals(p, m, reference::rotate_groups({row, row + K}, group));
    }
    CHECK(bad == 0);
}

} // namespace

TEST_CASE("I8-2: rotation, scale and rounding equal the dense double reference") {
    for (int64_t groups : {1, 2, 3, 5, 12, 31, 32, 33, 48, 63, 64, 65, 100}) {
        check(3, 256 * groups, 256);
        check(3, 256 * groups, 1);
    }
}

TEST_CASE("I8-2: the specified float operations in the CPU kernels' order, bit for bit") {
    for (int64_t group : {1, 256}) {
        const int64_t            M = 4, K = 3840;
        const std::vector<float> x   = test::uniform(M * K, 11, -40, 40);
        const auto               p   = quantize(x, M, K, group);
        int64_t                  bad = 0;
        for (int64_t m = 0; m < M; m++) {
            std::vector<float> y(&x[static_cast<size_t>(m * K)], &x[static_cast<size_t>(m * K)] + K);
            for (int64_t digit = 1; digit < group; digit *= 4) { // what the digit's four values are apart
                for (int64_t i = 0; i < K; i++) {
                    if (i / digit % 4 == 0) {
                        float *     f = &y[static_cast<size_t>(i)];
                        float &     a = f[0], &b = f[digit], &c = f[2 * digit], &d = f[3 * digit];
                        const float s = (a + b) + (c + d), old[4] = {a, b, c, d};
                        a = std::fmaf(s, 0.5f, -old[3]);
                        b = std::fmaf(s, 0.5f, -old[2]);
                        c = std::fmaf(s, 0.5f, -old[1]);
                        d = std::fmaf(s, 0.5f, -old[0]);
                    }
                }
            }
            float most = 0;
            for (float f : y) {
                most = std::fmax(most, std::fabs(f));
            }
            const float scale = most / 127.0f, inverse = 1.0f / scale;
            bad += p.scale(m) != scale;
            for (int64_t k = 0; k < K; k++) {
                bad += static_cast<float>(p.row(m)[k]) != std::nearbyint(y[static_cast<size_t>(k)] * inverse);
            }
        }
        CHECK(bad == 0);
    }
}

TEST_CASE("I8-2: K that is no multiple of a vector") {
    for (int64_t K : {1, 2, 3, 4, 5, 7, 9, 31, 63, 65, 100, 127, 255, 257, 1021, 8191, 16385}) {
        check(5, K, 1);
    }
}

TEST_CASE("I8-2: the long rows of users, and rows that several kernels share") {
    for (int64_t group : {1, 256}) {
        for (int64_t K : {3840, 10240, 28672, 32768, 33024, 65536, 81920}) {
            check(2, K, group);
        }
    }
    check(3, 40001, 1);
}

TEST_CASE("I8-2: strided and unaligned rows, row counts around the padding, more than 65,535 rows") {
    for (int64_t group : {1, 256}) {
        for (int64_t M : {1, 2, 3, 4, 5, 9}) {
            for (layout l : {layout{0, 0}, layout{4, 0}, layout{5, 0}, layout{0, 1}, layout{8, 4}}) {
                check(M, 768, group, l);
            }
        }
        check(2, 40960, group, {3, 1});
        check(70001, 256, group, {}, 97);
    }
}

TEST_CASE("I8-2: the packed size is rows padded to four, then the scales") {
    CHECK(ggml_ext_cuda_convrot_padded_rows(1) == 4);
    CHECK(ggml_ext_cuda_convrot_padded_rows(4) == 4);
    CHECK(ggml_ext_cuda_convrot_padded_rows(5) == 8);
    CHECK(ggml_ext_cuda_convrot_scale_offset(5, 64) == 8 * 64);
    CHECK(ggml_ext_cuda_convrot_size(5, 64) == 8 * 64 + 5 * 4);
}

TEST_CASE("I8-2: rounding is half to even") {
    // largest magnitude 127: scale 1, values stay what they are
    const std::vector<float> x   = {127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f, -126.5f, 3.4999f};
    const int8_t             q[] = {127, 0, 2, 2, 0, -2, -2, 126, -126, 3};
    const auto               p   = quantize(x, 1, 10, 1);
    CHECK(p.scale(0) == 1.0f);
    for (int i = 0; i < 10; i++) {
        CHECK(p.row(0)[i] == q[i]);
    }
}

TEST_CASE("I8-2: a zero row, one outlier, tiny and huge rows") {
    for (int64_t group : {1, 256}) {
        std::vector<float> x(5 * 256, 0.0f);
        x[256 + 3] = 1e30f; // row 1: an outlier alone
        for (size_t i = 0; i < 256; i++) {
            x[512 + i]  = static_cast<float>(i) * 1e-41f;                       // row 2: subnormal
            x[768 + i]  = static_cast<float>(static_cast<int>(i) - 30) * 1e34f; // row 3: near overflow, not over
            x[1024 + i] = i == 5 ? 1e-45f : 0.0f;                               // row 4: the scale rounds to zero
        }
        const auto p = quantize(x, 5, 256, group);
        for (int64_t m : {0, 4}) {
            CHECK(p.scale(m) == 0.0f);
            for (int64_t k = 0; k < 256; k++) {
                CHECK(p.row(m)[k] == 0);
            }
        }
        for (int64_t m : {1, 2, 3}) {
            const auto y = reference::rotate_groups(
                {&x[static_cast<size_t>(m * 256)], &x[static_cast<size_t>(m * 256)] + 256}, group);
            const double scale = reference::largest(y) / 127;
            CAPTURE(m);
            CAPTURE(group);
            CHECK(std::fabs(p.scale(m) - scale) <= 1e-6 * scale + 3e-45);
            for (int64_t k = 0; k < 256; k++) {
                CHECK(std::fabs(p.row(m)[k] - y[static_cast<size_t>(k)] / p.scale(m)) < 0.51);
            }
        }
    }
}

TEST_CASE("I8-2: a row with NaN or an infinity has scale NaN and zeros; its neighbours do not notice") {
    for (int64_t group : {1, 256}) {
        for (int64_t K : {256, 33024}) {
            for (float poison : {NAN, INFINITY, -INFINITY, -NAN}) {
                std::vector<float> x               = test::uniform(3 * K, 9);
                x[static_cast<size_t>(2 * K - 77)] = poison;
                const auto p                       = quantize(x, 3, K, group);
                CHECK(std::isnan(p.scale(1)));
                CHECK(std::isfinite(p.scale(0)));
                CHECK(std::isfinite(p.scale(2)));
                int64_t nonzero = 0;
                for (int64_t k = 0; k < K; k++) {
                    nonzero += p.row(1)[k] != 0;
                }
                CHECK(nonzero == 0);
            }
        }
    }
}

TEST_CASE("I8-2: bad input is a status, and nothing is written") {
    const test::device<float>            x(40960), scale(1);
    const test::device<int8_t>           q(4 * 40960), workspace(64);
    const ggml_ext_cuda_quantize_i8_args good = {1, 256, 256, 4, x.data(), 1024, q.data(), 256, scale.data()};

    const auto with = [&](auto change) {
        ggml_ext_cuda_quantize_i8_args a = good;
        change(a);
        return ggml_ext_cuda_quantize_i8(&a, workspace.data(), 4, nullptr);
    };
    CHECK(with([](auto & a) { a.group = 8; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.group = 64; }) == GGML_EXT_CUDA_UNSUPPORTED);
    CHECK(with([](auto & a) { a.K = 100; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.padded_rows = 0; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.q_stride = 255; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_stride = 1026; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.scale = nullptr; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = a.q_stride = 40960; }) == GGML_EXT_CUDA_SMALL_WORKSPACE);
    for (int8_t v : q.get()) {
        REQUIRE(v == test::poison<int8_t>());
    }
    CHECK(scale.get()[0] == test::poison<float>());
}
