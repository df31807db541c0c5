#include "device.h"
#include "reference.h"

namespace {

struct problem {
    int64_t M, N;
    int64_t x_scales = -1, w_scales = -1; // -1: one a row, one a column; 0: none
    bool    bias = true, in_place = false;
    int64_t pad = 0, first = 0; // floats
};

std::vector<int32_t> sums(int64_t n, unsigned seed) {
    std::mt19937                           random(seed);
    std::uniform_int_distribution<int32_t> range(-50000000, 50000000);
    std::vector<int32_t>                   v(static_cast<size_t>(n));
    for (int32_t & s : v) {
        s = range(random);
    }
    v[0] = INT32_MIN;
    return v;
}

void check(const problem & p) {
    CAPTURE(p.M);
    CAPTURE(p.N);
    CAPTURE(p.x_scales);
    CAPTURE(p.w_scales);
    CAPTURE(p.pad);
    const int64_t stride = p.N + p.pad;
    const auto    sum    = sums(p.M * stride + p.first, 1);
    const auto    x = test::uniform(p.M, 2, 1e-4f, 1e-2f), w = test::uniform(p.N, 3, 1e-4f, 1e-2f),
               b = test::uniform(p.N, 4);
    const test::device<int32_t>         dsum(sum);
    const test::device<float>           dx(x), dw(w), db(b), dst(p.M * stride + p.first);
    const auto                          bytes  = static_cast<size_t>(stride) * 4;
    float * const                       out    = (p.in_place ? reinterpret_cast<float *>(dsum.data()) : dst.data()) + p.first;
    const ggml_ext_cuda_rescale_i8_args args   = {p.M,
                                                  p.N,
                                                  dsum.data() + p.first,
                                                  bytes,
                                                p.x_scales == 0 ? nullptr : dx.data(),
                                                p.x_scales < 0 ? p.M : p.x_scales,
                                                p.w_scales == 0 ? nullptr : dw.data(),
                                                p.w_scales < 0 ? p.N : p.w_scales,
                                                p.bias ? db.data() : nullptr,
                                                out,
                                                  bytes};
    const int                           status = ggml_ext_cuda_rescale_i8(&args, nullptr);
    REQUIRE_MESSAGE(status == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());

    std::vector<float> got(sum.size());
    if (p.in_place) {
        const auto bits = dsum.get();
        std::memcpy(got.data(), bits.data(), bits.size() * 4);
    } else {
        got = dst.get();
    }
    int64_t wrong_bits = 0, far = 0, spilled = 0;
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()); i++) {
        const int64_t m = (i - p.first) / stride, n = (i - p.first) % stride;
        const auto    at = static_cast<size_t>(i);
        if (i < p.first || n >= p.N) {
            spilled += !p.in_place && got[at] != test::poison<float>();
            continue;
        }
        const float xs = p.x_scales == 0 ? 1 : x[static_cast<size_t>(p.x_scales == 1 ? 0 : m)];
        const float ws = p.w_scales == 0 ? 1 : w[static_cast<size_t>(p.w_scales == 1 ? 0 : n)];
        const float bs = p.bias ? b[static_cast<size_t>(n)] : 0;
        // the specified float operations, one rounding each
        const volatile float converted = static_cast<float>(sum[at]), once = converted * xs, twice = once * ws;
        const volatile float ordered = p.bias ? twice + bs : twice;
        wrong_bits += got[at] != ordered;
        const double expected = reference::rescaled(sum[at], xs, ws, bs);
        far += !(std::fabs(got[at] - expected) <= 3e-7 * (std::fabs(expected - bs) + std::fabs(bs)));
    }
    CHECK(wrong_bits == 0);
    CHECK(far == 0);
    CHECK(spilled == 0);
}

} // namespace

TEST_CASE("I8-1: float(sum) * X_scale * W_scale + bias, each operation rounded once, in that order") {
    for (int64_t N : {1, 3, 4, 64, 1000, 1023, 1024, 3840, 10240, 28672}) {
        for (int64_t M : {1, 2, 5}) {
            check({M, N});
        }
    }
    check({260, 516});
    check({70001, 4});
    check({70001, 3});
}

TEST_CASE("I8-1: scales of a row, of all rows, none; without a bias; strided, unaligned, in place") {
    for (int64_t x_scales : {-1, 0, 1}) {
        for (int64_t w_scales : {-1, 0, 1}) {
            for (bool bias : {false, true}) {
                for (int64_t N : {12, 13}) {
                    check({7, N, x_scales, w_scales, bias});
                }
            }
        }
    }
    for (bool in_place : {false, true}) {
        for (int64_t pad : {0, 4, 5}) {
            for (int64_t first : {0, 1, 4}) {
                check({7, 260, -1, -1, true, in_place, pad, first});
            }
        }
    }
}

TEST_CASE("I8-1: malformed scale shapes and strides are a status, and nothing is written") {
    const test::device<int32_t>         sum(16);
    const test::device<float>           scale(16), dst(16);
    const ggml_ext_cuda_rescale_i8_args good = {4, 4, sum.data(), 16, scale.data(), 4, scale.data(),
                                                4, nullptr, dst.data(), 16};

    const auto with = [&](auto change) {
        ggml_ext_cuda_rescale_i8_args a = good;
        change(a);
        return ggml_ext_cuda_rescale_i8(&a, nullptr);
    };
    CHECK(with([](auto & a) { a.x_scales = 3; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.w_scales = 2; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.sum_stride = 12; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst = nullptr; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.N = 0; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    for (float v : dst.get()) {
        CHECK(v == test::poison<float>());
    }
}
