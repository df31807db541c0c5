#include "gelu_reference.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "pack_shares.h"
#include "reference.h"
#include "support.h"

#include <algorithm>
#include <doctest/doctest.h>

namespace {

struct problem {
    int64_t M, N, K;
    int     nth   = 1;
    int64_t x_pad = 0, dst_pad = 0, w_pad = 0;
    int64_t x_scales = -1, w_scales = -1; // -1: one each row or column; 0: none
    bool    bias       = true;
    int     activation = GGML_EXT_CPU_ACT_NONE;
};

std::vector<char> pack(const problem & p, const std::vector<int8_t> & w) {
    std::vector<char> packed(ggml_ext_cpu_gemm_i8_packed_size(p.N, p.K));
    REQUIRE(test::on_threads(p.nth, [&](int ith) {
                return ggml_ext_cpu_gemm_i8_pack(p.N, p.K, w.data(), static_cast<size_t>(p.K + p.w_pad), packed.data(),
                                                 packed.size(), ith, p.nth);
            }) == GGML_EXT_CPU_OK);
    return packed;
}

bool same_bits(float a, float b) {
    return std::memcmp(&a, &b, sizeof(a)) == 0;
}

// By packed weights, or by the weights themselves.
void check(const problem & p, const std::vector<int8_t> & x, const std::vector<int8_t> & w, bool unpacked) {
    CAPTURE(p.M);
    CAPTURE(p.N);
    CAPTURE(p.K);
    CAPTURE(p.nth);
    const int64_t            x_scales = p.x_scales < 0 ? p.M : p.x_scales, w_scales = p.w_scales < 0 ? p.N : p.w_scales;
    const std::vector<float> x_scale = test::uniform(static_cast<size_t>(x_scales), 3, 0.0f, 0.1f);
    const std::vector<float> w_scale = test::uniform(static_cast<size_t>(w_scales), 4, -0.1f, 0.1f);
    const std::vector<float> bias    = test::uniform(static_cast<size_t>(p.N), 5, -10.0f, 10.0f);
    const std::vector<char>  packed  = unpacked ? std::vector<char>() : pack(p, w);
    test::padded             dst(p.M, p.N, p.dst_pad);

    const ggml_ext_cpu_gemm_i8_args args = {p.M,
                                            p.N,
                                            p.K,
                                            unpacked ? nullptr : packed.data(),
                                            packed.size(),
                                            x.data(),
                                            static_cast<size_t>(p.K + p.x_pad),
                                            x_scales ? x_scale.data() : nullptr,
                                            x_scales,
                                            w_scales ? w_scale.data() : nullptr,
                                            w_scales,
                                            p.bias ? bias.data() : nullptr,
                                            p.activation,
                                            dst.data.data(),
                                            dst.stride_bytes(),
                                            unpacked ? w.data() : nullptr,
                                            static_cast<size_t>(p.K + p.w_pad)};
    REQUIRE(test::on_threads(p.nth, [&](int ith) {
                std::vector<char> scratch(ggml_ext_cpu_gemm_i8_scratch_size(p.M, p.N, p.K));
                return ggml_ext_cpu_gemm_i8(&args, scratch.data(), scratch.size(), ith, p.nth);
            }) == GGML_EXT_CPU_OK);

    const int64_t step = p.M * p.N * p.K > (int64_t{1} << 24) ? 97 : 1;
    int64_t       bad  = 0;
    for (int64_t i = 0; i < p.M * p.N; i += step) {
        const size_t  m = static_cast<size_t>(i / p.N), n = static_cast<size_t>(i % p.N);
        const int64_t sum = reference::dot_i8(&x[m * static_cast<size_t>(p.K + p.x_pad)],
                                              &w[n * static_cast<size_t>(p.K + p.w_pad)], p.K);
        const float   expected =
            reference::scaled(sum, x_scales ? &x_scale[x_scales == 1 ? 0 : m] : nullptr,
                              w_scales ? &w_scale[w_scales == 1 ? 0 : n] : nullptr, p.bias ? &bias[n] : nullptr);
        const float got = dst(i / p.N, i % p.N);
        if (p.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
            const double gelu = reference::gelu_erf(expected);
            bad += !(std::fabs(got - gelu) <= 1e-6 * std::fabs(gelu) + 1e-30);
        } else {
            bad += !same_bits(got, expected);
        }
    }
    CHECK(bad == 0);
    CHECK(dst.guards_intact());
}

void check(const problem & p, const std::vector<int8_t> & x, const std::vector<int8_t> & w) {
    check(p, x, w, false);
    if (p.M <= ggml_ext_cpu_gemm_i8_unpacked_rows()) {
        check(p, x, w, true);
    }
}

void check(const problem & p) {
    check(p, test::bytes(static_cast<size_t>(p.M * (p.K + p.x_pad)), 1),
          test::bytes(static_cast<size_t>(p.N * (p.K + p.w_pad)), 2));
}

} // namespace

TEST_CASE("I8-1: every ragged M, N, K around the register tile is bit-equal to the definition") {
    for (int64_t M : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 25}) {
        for (int64_t N : {1, 3, 7, 8, 9, 16, 17, 31, 32, 33, 49}) {
            for (int64_t K : {1, 2, 3, 4, 5, 6, 7, 16, 17, 66, 67}) {
                check({M, N, K});
            }
        }
    }
}

TEST_CASE("I8-1: shapes of users and of MiniLM, blocks of K and M crossed") {
    check({16, 17, 16});
    check({128, 384, 384});
    check({64, 384, 1536});
    check({145, 35, 1541});
    check({145, 35, 4099});
    check({30, 700, 1001}); // weights that do not stay in L2
    check({300, 40, 770});
    check({3, 64, 3840});
    check({2, 70, 10240});
    check({1, 33, 28672});
    check({2, 51866, 64});
}

TEST_CASE("I8-1: weights scaled by their row's largest, few of which could saturate a sum of two") {
    const auto quantized = [](const problem & p) {
        check(p, test::quantized_rows(static_cast<size_t>(p.M), static_cast<size_t>(p.K + p.x_pad), 1),
              test::quantized_rows(static_cast<size_t>(p.N), static_cast<size_t>(p.K + p.w_pad), 2));
    };
    for (int64_t M : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 41, 129}) {
        for (int64_t N : {1, 15, 16, 17, 40}) {
            for (int64_t K : {1, 7, 8, 9, 31, 32, 33, 100, 384}) {
                quantized({M, N, K});
            }
        }
    }
    quantized({130, 50, 4096});
    quantized({20, 35, 9001, 3, 3, 2, 5});
    quantized({1, 40, 131071});
    quantized({260, 33, 1937, 4, 1, 1, 1});
}

TEST_CASE("I8-1: weights at the ends of int8 among small ones, against every x") {
    for (int64_t M : {1, 4, 5, 37}) {
        for (int x : {-128, -127, 127, 1000}) { // 1000: any
            const int64_t       N = 70, K = 3000;
            std::vector<int8_t> w = test::bytes(static_cast<size_t>(N * K), 2, -20, 20), ends = test::bytes(w.size(), 3, 0, 1);
            for (size_t i = 0; i < w.size(); i++) { // runs of ends, of one sign and of both, a few times in each column
                if (i * 2654435761u % 997 < 7) {
                    w[i] = i % 3 == 0 ? -128 : i % 5 == 0 || ends[i] == 0 ? 127
                                                                          : -128;
                }
            }
            std::vector<int8_t> rows = test::bytes(static_cast<size_t>(M * K), 4);
            for (int8_t & v : rows) {
                v = x == 1000 ? v : static_cast<int8_t>(x);
            }
            check({M, N, K}, rows, w);
        }
    }
}

TEST_CASE("I8-1: columns of likely weights beside columns of which nearly all are large") {
    for (int64_t M : {1, 6, 140}) {
        const int64_t             N = 100, K = 2500;
        std::vector<int8_t>       w     = test::quantized_rows(static_cast<size_t>(N), static_cast<size_t>(K), 1);
        const std::vector<int8_t> large = test::bytes(w.size(), 2);
        for (int64_t n : {20, 21, 50, 99}) {
            std::copy_n(&large[static_cast<size_t>(n * K)], K, &w[static_cast<size_t>(n * K)]);
        }
        check({M, N, K, 2}, test::bytes(static_cast<size_t>(M * K), 3), w);
    }
}

TEST_CASE("I8-1: the sum is exact at the ends of int8, -128 on both sides included") {
    for (int64_t K : {2, 3, 767, 1537, 131071}) {
        for (int x : {-128, 127}) {
            for (int w : {-128, 127}) {
                const int64_t M = 7, N = 17;
                check({M, N, K, 1, 0, 0, 0, 0, 0, false},
                      std::vector<int8_t>(static_cast<size_t>(M * K), static_cast<int8_t>(x)),
                      std::vector<int8_t>(static_cast<size_t>(N * K), static_cast<int8_t>(w)));
            }
        }
    }
}

TEST_CASE("I8-1: zero rows of x and of w") {
    std::vector<int8_t> x = test::bytes(5 * 100, 1), w = test::bytes(20 * 100, 2);
    std::memset(&x[200], 0, 100);
    std::memset(&w[700], 0, 100);
    check({5, 20, 100}, x, w);
    check({5, 20, 100, 1, 0, 0, 0, -1, -1, false}, x, w);
}

TEST_CASE("I8-1: scales [N], [1] and none, with and without bias") {
    for (int64_t x_scales : {-1, 0, 1}) {
        for (int64_t w_scales : {-1, 0, 1}) {
            for (bool bias : {false, true}) {
                check({9, 37, 50, 1, 0, 0, 0, x_scales, w_scales, bias});
            }
        }
    }
}

TEST_CASE("I8-1: GELU behind the scales and the bias, with whole and ragged tiles, one and several blocks of K") {
    for (int64_t M : {1, 2, 3, 16, 33}) {
        for (int64_t N : {5, 32, 49}) {
            for (int64_t K : {7, 64, 2500}) {
                check({M, N, K, 1, 0, 0, 0, -1, -1, true, GGML_EXT_CPU_ACT_GELU_ERF});
            }
        }
    }
    check({130, 200, 384, 2, 0, 0, 0, -1, -1, true, GGML_EXT_CPU_ACT_GELU_ERF});
}

TEST_CASE("I8-1: padded rows and any number of threads") {
    for (int nth : {1, 2, 3, 5, 8}) {
        check({77, 95, 800, nth, 3, 2, 5});
        check({1, 3, 10, nth, 1, 1, 1});
    }
}

TEST_CASE("I8-1: a NaN scale makes its row NaN, as the quantiser promises for rows with NaN") {
    const problem                   p = {3, 20, 8};
    const std::vector<int8_t>       x(3 * 8), w = test::bytes(20 * 8, 2);
    const std::vector<char>         packed    = pack(p, w);
    const float                     x_scale[] = {1, NAN, 1};
    std::vector<float>              dst(60);
    std::vector<char>               scratch(ggml_ext_cpu_gemm_i8_scratch_size(3, 20, 8));
    const ggml_ext_cpu_gemm_i8_args args = {
        3, 20, 8, packed.data(), packed.size(), x.data(), 8, x_scale, 3, nullptr, 0, nullptr, 0, dst.data(), 80, nullptr, 0};
    REQUIRE(ggml_ext_cpu_gemm_i8(&args, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    for (size_t i = 0; i < 60; i++) {
        CHECK(std::isnan(dst[i]) == (i / 20 == 1));
    }
}

TEST_CASE("I8-1: a share of the packing reads the rows that it says, and all shares together read each row once") {
    const int64_t K = 40;
    for (const int64_t N : {1, 31, 64, 200, 384}) {
        const auto pack = [&](const std::vector<int8_t> & w, std::vector<char> & packed, int ith, int nth) {
            return ggml_ext_cpu_gemm_i8_pack(N, K, w.data(), static_cast<size_t>(K), packed.data(), packed.size(), ith, nth);
        };
        test::check_pack_shares(test::bytes(static_cast<size_t>(N * K), 1), int8_t{77}, N, K, ggml_ext_cpu_gemm_i8_packed_size(N, K), pack, ggml_ext_cpu_gemm_i8_pack_share);
    }
}

TEST_CASE("I8-1: bad input is a status and writes nothing") {
    const problem                   p = {4, 8, 16};
    const std::vector<int8_t>       w = test::bytes(8 * 16, 1), x = test::bytes(4 * 16, 2);
    const std::vector<char>         packed = pack(p, w);
    const std::vector<float>        scale(8, 1.0f);
    std::vector<float>              dst(32, test::GUARD);
    std::vector<char>               scratch(ggml_ext_cpu_gemm_i8_scratch_size(4, 8, 16)), small(64);
    const ggml_ext_cpu_gemm_i8_args good = {
        4, 8, 16, packed.data(), packed.size(), x.data(), 16, scale.data(), 4, scale.data(), 8, nullptr,
        0, dst.data(), 32, nullptr, 0};

    auto with = [&](auto change) {
        ggml_ext_cpu_gemm_i8_args a = good;
        change(a);
        return ggml_ext_cpu_gemm_i8(&a, scratch.data(), scratch.size(), 0, 1);
    };
    CHECK(with([](auto & a) { a.x_scales = 3; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.w_scales = 4; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_stride = 15; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.M = a.N = int64_t{1} << 40; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gemm_i8_packed_size(int64_t{1} << 62, 16) == 0);
    CHECK(ggml_ext_cpu_gemm_i8_pack(int64_t{1} << 62, 16, w.data(), 16, small.data(), small.size(), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst = test::off_by_one(a.dst); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst_stride = 33; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.w_scale = test::off_by_one(a.w_scale); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gemm_i8(&good, test::off_by_one(scratch.data()), scratch.size(), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = 17, a.x_stride = 17; }) != GGML_EXT_CPU_OK);
    CHECK(with([](auto & a) { a.K = 15; }) == GGML_EXT_CPU_WRONG_PACKING);
    CHECK(with([](auto & a) { a.K = 131072, a.x_stride = 131072; }) == GGML_EXT_CPU_UNSUPPORTED);
    CHECK(ggml_ext_cpu_gemm_i8(&good, scratch.data(), scratch.size() - 1, 0, 1) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(ggml_ext_cpu_gemm_i8_pack(8, 16, w.data(), 16, small.data(), small.size(), 0, 1) ==
          GGML_EXT_CPU_SMALL_BUFFER);
    for (float f : dst) {
        CHECK(f == test::GUARD);
    }
}
