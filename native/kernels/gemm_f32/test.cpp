#include "gelu_reference.h"
#include "ggml-ext-kernels/gemm_f32.h"
#include "pack_shares.h"
#include "reference.h"
#include "support.h"

#include <climits>
#include <doctest/doctest.h>

namespace {

struct problem {
    int64_t M, N, K;
    int64_t x_pad = 0, dst_pad = 0, w_pad = 0;
    int     nth = 1, activation = GGML_EXT_CPU_ACT_NONE;
    bool    bias = false;
};

std::vector<char> pack(const problem & p, const std::vector<float> & w) {
    std::vector<char> packed(ggml_ext_cpu_gemm_f32_packed_size(p.N, p.K));
    REQUIRE(test::on_threads(p.nth, [&](int ith) {
                return ggml_ext_cpu_gemm_f32_pack(p.N, p.K, w.data(),
                                                  static_cast<size_t>(p.K + p.w_pad) * sizeof(float), packed.data(),
                                                  packed.size(), ith, p.nth);
            }) == GGML_EXT_CPU_OK);
    return packed;
}

void check(const problem & p) {
    CAPTURE(p.M);
    CAPTURE(p.N);
    CAPTURE(p.K);
    CAPTURE(p.nth);
    const std::vector<float> w      = test::uniform(static_cast<size_t>(p.N * (p.K + p.w_pad)), 1);
    const std::vector<float> x      = test::uniform(static_cast<size_t>(p.M * (p.K + p.x_pad)), 2);
    const std::vector<float> bias   = test::uniform(static_cast<size_t>(p.N), 3);
    const std::vector<char>  packed = pack(p, w);
    test::padded             dst(p.M, p.N, p.dst_pad);

    const ggml_ext_cpu_gemm_f32_args args = {p.M,
                                             p.N,
                                             p.K,
                                             packed.data(),
                                             packed.size(),
                                             x.data(),
                                             static_cast<size_t>(p.K + p.x_pad) * sizeof(float),
                                             dst.data.data(),
                                             dst.stride_bytes(),
                                             p.bias ? bias.data() : nullptr,
                                             p.activation};
    REQUIRE(test::on_threads(p.nth, [&](int ith) {
                std::vector<char> scratch(ggml_ext_cpu_gemm_f32_scratch_size(p.M, p.N, p.K));
                return ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), ith, p.nth);
            }) == GGML_EXT_CPU_OK);

    // every output of small products, a sample of large ones
    const int64_t step = p.M * p.N * p.K > (int64_t{1} << 24) ? 97 : 1;
    int64_t       bad  = 0;
    for (int64_t i = 0; i < p.M * p.N; i += step) {
        const int64_t m = i / p.N, n = i % p.N;
        const auto    s        = reference::dot(&x[static_cast<size_t>(m * (p.K + p.x_pad))],
                                                &w[static_cast<size_t>(n * (p.K + p.w_pad))], p.K);
        double        expected = s.value + (p.bias ? bias[static_cast<size_t>(n)] : 0);
        if (p.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
            expected = reference::gelu_erf(expected);
        }
        // a random walk of K roundings; GELU's slope stays below 1.13
        const double tolerance = 1.2e-7 * (2 + std::sqrt(static_cast<double>(p.K))) *
                                 (s.magnitude / std::sqrt(static_cast<double>(p.K)) + 1);
        bad += !(std::fabs(dst(m, n) - expected) <= tolerance);
    }
    CHECK(bad == 0);
    CHECK(dst.guards_intact());
}

} // namespace

TEST_CASE("GEMM-1: every ragged M, N, K around the register tile equals the double product") {
    for (int64_t M : {1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 17, 25}) {
        for (int64_t N : {1, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 49}) {
            for (int64_t K : {1, 2, 3, 5, 16, 17, 67}) {
                check({M, N, K, 0, 0, 0});
            }
        }
    }
}

TEST_CASE("GEMM-1: shapes of users and of MiniLM, blocks of K and M crossed") {
    check({16, 17, 16});
    check({128, 384, 384});
    check({512, 384, 1536});
    check({300, 130, 1537});
    check({145, 33, 769});
    check({1, 4096, 4096});
    check({2, 51866, 64});
    check({4096, 40, 385});
}

TEST_CASE("GEMM-1: padded rows of x, w and dst; bytes outside the output stay untouched") {
    check({19, 37, 401, 3, 5, 7});
    check({7, 5, 9, 1, 1, 1});
}

TEST_CASE("GEMM-1: any number of threads, more than there is work included") {
    for (int nth : {2, 3, 4, 5, 8}) {
        check({77, 95, 400, 0, 2, 0, nth});
        check({1, 3, 10, 0, 2, 0, nth});
        check({64, 2, 10, 0, 2, 0, nth});
    }
}

TEST_CASE("GEMM-1: the threads change no bit of the product") {
    for (const int64_t M : {1, 2, 3, 7, 13, 145, 160}) {
        for (const int64_t N : {16, 384}) {
            const problem            p = {M, N, 401};
            const std::vector<float> w = test::uniform(static_cast<size_t>(N * p.K), 1), x = test::uniform(static_cast<size_t>(M * p.K), 2);
            const std::vector<char>  packed = pack(p, w);
            std::vector<float>       alone;
            for (const int nth : {1, 2, 3, 4, 7, 16}) {
                CAPTURE(M);
                CAPTURE(N);
                CAPTURE(nth);
                std::vector<float>               dst(static_cast<size_t>(M * N));
                const size_t                     row  = static_cast<size_t>(p.K) * sizeof(float);
                const ggml_ext_cpu_gemm_f32_args args = {M, N, p.K, packed.data(), packed.size(), x.data(), row, dst.data(), static_cast<size_t>(N) * sizeof(float), nullptr, 0};
                REQUIRE(test::on_threads(nth, [&](int ith) {
                            std::vector<char> scratch(ggml_ext_cpu_gemm_f32_scratch_size(M, N, p.K));
                            return ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), ith, nth);
                        }) == GGML_EXT_CPU_OK);
                if (nth == 1) {
                    alone = dst;
                }
                CHECK(std::memcmp(dst.data(), alone.data(), dst.size() * sizeof(float)) == 0);
            }
        }
    }
}

TEST_CASE("GEMM-1: bias and GELU epilogue") {
    check({13, 45, 500, 0, 1, 0, 2, GGML_EXT_CPU_ACT_NONE, true});
    check({13, 45, 500, 0, 1, 0, 2, GGML_EXT_CPU_ACT_GELU_ERF, true});
    check({128, 1536, 384, 0, 0, 0, 2, GGML_EXT_CPU_ACT_GELU_ERF, true});
}

TEST_CASE("GEMM-1: a NaN of x reaches its whole output row and no other") {
    const problem      p = {9, 20, 33};
    std::vector<float> w = test::uniform(20 * 33, 1), x = test::uniform(9 * 33, 2);
    x[4 * 33 + 7]                           = NAN;
    const std::vector<char>          packed = pack(p, w);
    std::vector<float>               dst(9 * 20);
    std::vector<char>                scratch(ggml_ext_cpu_gemm_f32_scratch_size(9, 20, 33));
    const ggml_ext_cpu_gemm_f32_args args = {
        9, 20, 33, packed.data(), packed.size(), x.data(), 33 * 4, dst.data(), 20 * 4, nullptr, 0};
    REQUIRE(ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    for (size_t i = 0; i < dst.size(); i++) {
        CHECK(std::isnan(dst[i]) == (i / 20 == 4));
    }
}

TEST_CASE("GEMM-1: a share of the packing reads the rows that it says, and all shares together read each row once") {
    const int64_t K = 40;
    for (const int64_t N : {1, 31, 64, 200, 384}) {
        const auto pack = [&](const std::vector<float> & w, std::vector<char> & packed, int ith, int nth) {
            return ggml_ext_cpu_gemm_f32_pack(N, K, w.data(), static_cast<size_t>(K) * sizeof(float), packed.data(), packed.size(), ith, nth);
        };
        test::check_pack_shares(test::uniform(static_cast<size_t>(N * K), 1), std::nanf(""), N, K, ggml_ext_cpu_gemm_f32_packed_size(N, K), pack, ggml_ext_cpu_gemm_f32_pack_share);
    }
}

TEST_CASE("GEMM-1: bad input is a status and writes nothing") {
    const problem                    p = {4, 8, 16};
    const std::vector<float>         w = test::uniform(8 * 16, 1), x = test::uniform(4 * 16, 2);
    std::vector<char>                packed = pack(p, w);
    std::vector<float>               dst(4 * 8, test::GUARD);
    std::vector<char>                scratch(ggml_ext_cpu_gemm_f32_scratch_size(4, 8, 16));
    const ggml_ext_cpu_gemm_f32_args good = {4, 8, 16, packed.data(), packed.size(), x.data(), 64, dst.data(),
                                             32, nullptr, 0};

    auto status = [&](ggml_ext_cpu_gemm_f32_args a, size_t scratch_size = SIZE_MAX, int ith = 0, int nth = 1) {
        return ggml_ext_cpu_gemm_f32(&a, scratch.data(), scratch_size == SIZE_MAX ? scratch.size() : scratch_size, ith,
                                     nth);
    };
    auto with = [&](auto change) {
        ggml_ext_cpu_gemm_f32_args a = good;
        change(a);
        return status(a);
    };
    CHECK(with([](auto & a) { a.M = 0; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = -1; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x = nullptr; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_stride = 60; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst_stride = 28; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.activation = 9; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = int64_t{1} << 58; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gemm_f32_packed_size(16, int64_t{1} << 58) == 0);
    CHECK(ggml_ext_cpu_gemm_f32_pack(16, int64_t{1} << 58, w.data(), 0, packed.data(), packed.size(), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x = test::off_by_one(a.x); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst = test::off_by_one(a.dst); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.packed = test::off_by_one(a.packed); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_stride = 66; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.dst_stride = 34; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_gemm_f32(&good, test::off_by_one(scratch.data()), scratch.size(), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.N = 7; }) == GGML_EXT_CPU_WRONG_PACKING);
    CHECK(with([](auto & a) { a.packed_size -= 1; }) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(status(good, scratch.size() - 1) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(status(good, SIZE_MAX, 1, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    packed[0] = 'x';
    CHECK(status(good) == GGML_EXT_CPU_WRONG_PACKING);
    CHECK(ggml_ext_cpu_gemm_f32_packed_size(0, 5) == 0);
    for (float f : dst) {
        CHECK(f == test::GUARD);
    }
}

TEST_CASE("GEMM-1: the share of one of very many threads is found at once") {
    const std::vector<char>          packed = pack({4, 8, 16}, test::uniform(8 * 16, 1));
    const std::vector<float>         x      = test::uniform(4 * 16, 2);
    std::vector<float>               dst(4 * 8, test::GUARD);
    std::vector<char>                scratch(ggml_ext_cpu_gemm_f32_scratch_size(4, 8, 16));
    const ggml_ext_cpu_gemm_f32_args args = {4, 8, 16, packed.data(), packed.size(), x.data(), 64, dst.data(), 32, nullptr, 0};
    REQUIRE(ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), 0, INT_MAX) == GGML_EXT_CPU_OK);
    CHECK(dst[0] == test::GUARD); // the last one's
    REQUIRE(ggml_ext_cpu_gemm_f32(&args, scratch.data(), scratch.size(), INT_MAX - 1, INT_MAX) == GGML_EXT_CPU_OK);
    CHECK(dst[0] != test::GUARD);
}
