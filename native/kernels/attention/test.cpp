#include "ggml-ext-kernels/attention.h"
#include "reference.h"
#include "support.h"

#include <doctest/doctest.h>

namespace {

constexpr uint16_t MINUS_INFINITY = 0xFC00;

struct shape {
    int64_t queries, keys, d_k, d_v, heads, kv_heads, batches;
};

struct options {
    bool    half = false, mask = false, causal = false;
    int64_t mask_heads  = 1;
    float   max_bias    = 0;
    int     threads     = 1;
    bool    interleaved = false; // heads inside a token's row, as a fused projection leaves them
};

// Halves between 2^-10 and 2, of both signs.
std::vector<uint16_t> halves(size_t n, unsigned seed) {
    std::vector<uint16_t> out(n);
    const auto            random = test::uniform(n, seed, 0, 1);
    for (size_t i = 0; i < n; i++) {
        const auto bits = static_cast<uint16_t>(random[i] * 65535);
        out[i]          = static_cast<uint16_t>((bits & 0x8000) | (0x1400 + (bits & 0x7FFF) % 0x2C00));
    }
    return out;
}

ggml_ext_cpu_attention_strides strides(int64_t rows, int64_t heads, int64_t d, bool interleaved, size_t element) {
    const size_t row = static_cast<size_t>(d) * element;
    const size_t all = row * static_cast<size_t>(rows * heads);
    return interleaved ? ggml_ext_cpu_attention_strides{row * static_cast<size_t>(heads), row, all}
                       : ggml_ext_cpu_attention_strides{row, row * static_cast<size_t>(rows), all};
}

void check(const shape & s, const options & o) {
    CAPTURE(s.queries);
    CAPTURE(s.keys);
    CAPTURE(s.d_k);
    CAPTURE(s.d_v);
    const auto size = [](int64_t a, int64_t b, int64_t c, int64_t d) { return static_cast<size_t>(a * b * c * d); };
    const auto q    = test::uniform(size(s.queries, s.d_k, s.heads, s.batches), 1, -2, 2);
    const auto kf = test::uniform(size(s.keys, s.d_k, s.kv_heads, s.batches), 2), vf = test::uniform(size(s.keys, s.d_v, s.kv_heads, s.batches), 3);
    const auto kh = halves(kf.size(), 4), vh = halves(vf.size(), 5);
    auto       mask = halves(size(s.keys, s.queries, o.mask_heads, 1), 6);
    for (int64_t i = 0; o.causal && i < s.queries * o.mask_heads; i++) {
        for (int64_t j = 0; j < s.keys; j++) {
            if (j > i % s.queries + s.keys - s.queries) {
                mask[static_cast<size_t>(i * s.keys + j)] = MINUS_INFINITY;
            }
        }
    }
    const size_t                element = o.half ? 2 : 4;
    std::vector<float>          dst(size(s.queries, s.d_v, s.heads, s.batches) + 1, test::GUARD);
    ggml_ext_cpu_attention_args a{};
    a.queries      = s.queries;
    a.keys         = s.keys;
    a.heads        = s.heads;
    a.kv_heads     = s.kv_heads;
    a.batches      = s.batches;
    a.kv_batches   = s.batches;
    a.d_k          = s.d_k;
    a.d_v          = s.d_v;
    a.q            = q.data();
    a.q_stride     = strides(s.queries, s.heads, s.d_k, o.interleaved, 4);
    a.kv_type      = o.half ? GGML_EXT_CPU_ATTENTION_F16 : GGML_EXT_CPU_ATTENTION_F32;
    a.k            = o.half ? static_cast<const void *>(kh.data()) : kf.data();
    a.v            = o.half ? static_cast<const void *>(vh.data()) : vf.data();
    a.k_stride     = strides(s.keys, s.kv_heads, s.d_k, o.interleaved, element);
    a.v_stride     = strides(s.keys, s.kv_heads, s.d_v, o.interleaved, element);
    a.mask         = o.mask ? mask.data() : nullptr;
    a.mask_heads   = o.mask_heads;
    a.mask_batches = 1;
    a.mask_stride  = {static_cast<size_t>(s.keys) * 2, static_cast<size_t>(s.keys * s.queries) * 2, 0};
    a.scale        = 0.7f;
    a.max_bias     = o.max_bias;
    a.dst          = dst.data();
    a.dst_stride   = strides(s.queries, s.heads, s.d_v, true, 4);

    REQUIRE(test::on_threads(o.threads, [&](int ith) {
                std::vector<char> scratch(ggml_ext_cpu_attention_scratch_size(s.d_k, s.d_v));
                return ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), ith, o.threads);
            }) == GGML_EXT_CPU_OK);
    CHECK(dst.back() == test::GUARD);

    const auto at = [](const ggml_ext_cpu_attention_strides & st, int64_t row, int64_t head, int64_t batch, size_t bytes) {
        return (static_cast<size_t>(row) * st.row + static_cast<size_t>(head) * st.head + static_cast<size_t>(batch) * st.batch) / bytes;
    };
    int64_t bad = 0;
    for (int64_t b = 0; b < s.batches; b++) {
        for (int64_t h = 0; h < s.heads; h++) {
            const int64_t                    kv = h / (s.heads / s.kv_heads);
            std::vector<std::vector<double>> k, v;
            for (int64_t j = 0; j < s.keys; j++) {
                k.emplace_back();
                v.emplace_back();
                for (int64_t d = 0; d < s.d_k; d++) {
                    const size_t i = at(a.k_stride, j, kv, b, element) + static_cast<size_t>(d);
                    k.back().push_back(o.half ? reference::half_value(kh[i]) : kf[i]);
                }
                for (int64_t d = 0; d < s.d_v; d++) {
                    const size_t i = at(a.v_stride, j, kv, b, element) + static_cast<size_t>(d);
                    v.back().push_back(o.half ? reference::half_value(vh[i]) : vf[i]);
                }
            }
            for (int64_t i = 0; i < s.queries; i++) {
                const float *       row = &q[at(a.q_stride, i, h, b, 4)];
                std::vector<double> bias;
                for (int64_t j = 0; o.mask && j < s.keys; j++) {
                    bias.push_back((o.max_bias > 0 ? reference::alibi_slope(o.max_bias, s.heads, h) : 1) *
                                   reference::half_value(mask[static_cast<size_t>((h % o.mask_heads * s.queries + i) * s.keys + j)]));
                }
                const auto expected = reference::attention({row, row + s.d_k}, k, v, a.scale, bias);
                for (int64_t d = 0; d < s.d_v; d++) {
                    const double e = expected[static_cast<size_t>(d)];
                    bad += !(std::fabs(dst[at(a.dst_stride, i, h, b, 4) + static_cast<size_t>(d)] - e) <= 2e-6 * (1 + std::fabs(e)));
                }
            }
        }
    }
    CHECK(bad == 0);
}

} // namespace

TEST_CASE("attention equals the double definition for every tail of queries, keys and features") {
    for (int64_t queries : {1, 2, 5, 6, 7, 8, 9, 13, 24, 127, 128, 129, 300}) {
        check({queries, 17, 32, 32, 2, 2, 1}, {});
    }
    for (int64_t keys : {1, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 500}) {
        check({19, keys, 32, 32, 2, 2, 1}, {});
    }
    for (int64_t d : {1, 3, 8, 20, 40, 64, 80, 128, 192}) {
        check({11, 70, d, d, 1, 1, 1}, {});
        check({11, 70, 24, d, 1, 1, 1}, {});
    }
}

TEST_CASE("attention: half precision, shared heads, batches, heads inside rows, threads") {
    for (bool half : {false, true}) {
        for (bool interleaved : {false, true}) {
            for (int threads : {1, 2, 3, 7}) {
                options o;
                o.half        = half;
                o.interleaved = interleaved;
                o.threads     = threads;
                check({33, 70, 32, 48, 6, 2, 2}, o);
                o.mask = true;
                check({33, 70, 32, 48, 6, 1, 3}, o);
                o.mask_heads = 3;
                check({140, 70, 32, 20, 6, 6, 2}, o);
            }
        }
    }
}

TEST_CASE("attention: causal masks skip blocks, ALiBi's slopes for 8 and for 12 heads") {
    options o;
    o.mask = o.causal = true;
    check({200, 200, 32, 32, 1, 1, 1}, o);
    check({70, 300, 16, 16, 2, 1, 1}, o);
    o.max_bias = 8;
    check({40, 90, 16, 16, 8, 8, 1}, o);
    check({40, 90, 16, 16, 12, 4, 1}, o);
}

TEST_CASE("attention: a query without keys is zero, what is masked may be anything finite or NaN in k, a NaN shows in its row alone") {
    std::vector<float>    q(2 * 16, 1.0f), k(70 * 16, 0.5f), v(70 * 16, 2.0f), dst(2 * 16);
    std::vector<uint16_t> mask(2 * 70, 0);
    std::fill(mask.begin(), mask.begin() + 70, MINUS_INFINITY);
    mask[70 + 3] = MINUS_INFINITY;
    k[3 * 16]    = NAN;
    std::vector<char>           scratch(ggml_ext_cpu_attention_scratch_size(16, 16));
    ggml_ext_cpu_attention_args a{};
    a.queries = 2, a.keys = 70, a.heads = a.kv_heads = a.batches = a.kv_batches = 1, a.d_k = a.d_v = 16;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.dst = dst.data(), a.mask = mask.data();
    a.q_stride = a.k_stride = a.v_stride = a.dst_stride = {64, 0, 0};
    a.mask_heads = a.mask_batches = 1, a.mask_stride = {140, 0, 0}, a.scale = 1;
    REQUIRE(ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    for (int i = 0; i < 16; i++) {
        CHECK(dst[static_cast<size_t>(i)] == 0.0f);
        CHECK(dst[static_cast<size_t>(16 + i)] == doctest::Approx(2.0).epsilon(1e-6));
    }
    std::fill(q.begin() + 16, q.end(), -INFINITY); // scores of -inf that are not masked: 0/0, as the formula has it
    REQUIRE(ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    CHECK(dst[0] == 0.0f);
    CHECK(std::isnan(dst[16]));
    std::fill(q.begin() + 16, q.end(), 1.0f);
    k[3 * 16] = 0.5f;
    a.mask    = nullptr;
    q[0]      = NAN;
    REQUIRE(ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    CHECK(std::isnan(dst[0]));
    CHECK(dst[16] == doctest::Approx(2.0).epsilon(1e-6));
}

TEST_CASE("attention: a NaN or an infinity in a masked value counts for nothing, beside rows that do not mask it") {
    const int64_t         queries = 9, keys = 70, d = 20;
    std::vector<float>    q = test::uniform(9 * 20, 1), k = test::uniform(70 * 20, 2), v = test::uniform(70 * 20, 3), dst(9 * 20);
    std::vector<uint16_t> mask(static_cast<size_t>(queries * keys), 0);
    v[3 * 20 + 1]  = NAN;
    v[66 * 20 + 7] = INFINITY;
    for (int64_t i = 0; i < queries; i++) { // row 4 alone reads key 3, row 6 alone key 66
        mask[static_cast<size_t>(i * keys + 3)]  = i == 4 ? 0 : MINUS_INFINITY;
        mask[static_cast<size_t>(i * keys + 66)] = i == 6 ? 0 : MINUS_INFINITY;
    }
    std::fill(mask.begin() + 2 * keys, mask.begin() + 3 * keys, MINUS_INFINITY);
    std::vector<char>           scratch(ggml_ext_cpu_attention_scratch_size(d, d));
    ggml_ext_cpu_attention_args a{};
    a.queries = queries, a.keys = keys, a.heads = a.kv_heads = a.batches = a.kv_batches = 1, a.d_k = a.d_v = d;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.dst = dst.data(), a.mask = mask.data();
    a.q_stride = a.k_stride = a.v_stride = a.dst_stride = {80, 0, 0};
    a.mask_heads = a.mask_batches = 1, a.mask_stride = {140, 0, 0}, a.scale = 0.5f;
    REQUIRE(ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    const auto rows_of = [&](const std::vector<float> & m) {
        std::vector<std::vector<double>> rows;
        for (int64_t j = 0; j < keys; j++) {
            rows.emplace_back(m.begin() + j * d, m.begin() + (j + 1) * d);
        }
        return rows;
    };
    for (int64_t i = 0; i < queries; i++) {
        std::vector<double> bias;
        for (int64_t j = 0; j < keys; j++) {
            bias.push_back(reference::half_value(mask[static_cast<size_t>(i * keys + j)]));
        }
        const auto expected = reference::attention({q.begin() + i * d, q.begin() + (i + 1) * d}, rows_of(k), rows_of(v), 0.5, bias);
        for (int64_t e = 0; e < d; e++) {
            CAPTURE(i);
            CAPTURE(e);
            const double want = expected[static_cast<size_t>(e)], got = dst[static_cast<size_t>(i * d + e)];
            CHECK(std::isfinite(want) == !((i == 4 && e == 1) || (i == 6 && e == 7)));
            CHECK((std::isfinite(want) ? std::fabs(got - want) <= 2e-6 * (1 + std::fabs(want)) : std::isnan(got) == std::isnan(want) && !std::isfinite(got)));
        }
    }
}

TEST_CASE("attention: every half is read exactly") {
    std::vector<uint16_t> bits(65536);
    for (size_t i = 0; i < bits.size(); i++) {
        bits[i] = static_cast<uint16_t>(i);
    }
    // one key of 65,536 features is its own weighted mean
    std::vector<float>          q(1, 0.0f), dst(65536);
    const uint16_t              key = 0;
    std::vector<char>           scratch(ggml_ext_cpu_attention_scratch_size(1, 65536));
    ggml_ext_cpu_attention_args a{};
    a.queries = a.keys = a.heads = a.kv_heads = a.batches = a.kv_batches = a.d_k = 1, a.d_v = 65536;
    a.q = q.data(), a.k = &key, a.v = bits.data(), a.dst = dst.data(), a.kv_type = GGML_EXT_CPU_ATTENTION_F16;
    REQUIRE(ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1) == GGML_EXT_CPU_OK);
    int64_t bad = 0;
    for (size_t i = 0; i < bits.size(); i++) {
        const double e = reference::half_value(bits[i]);
        bad += std::isnan(e) ? !std::isnan(dst[i]) : dst[i] != e;
    }
    CHECK(bad == 0);
}

TEST_CASE("attention: bad input is a status") {
    float                       x[64] = {}, y[64] = {};
    std::vector<char>           scratch(ggml_ext_cpu_attention_scratch_size(8, 8));
    ggml_ext_cpu_attention_args good{};
    good.queries = good.keys = 2, good.heads = good.kv_heads = good.batches = good.kv_batches = 1, good.d_k = good.d_v = 8;
    good.q = x, good.k = x, good.v = x, good.dst = y;
    good.q_stride = good.k_stride = good.v_stride = good.dst_stride = {32, 64, 64};
    const auto status                                               = [&](auto change) {
        auto a = good;
        change(a);
        return ggml_ext_cpu_attention(&a, scratch.data(), scratch.size(), 0, 1);
    };
    using args = ggml_ext_cpu_attention_args;
    CHECK(status([](args &) {}) == GGML_EXT_CPU_OK);
    CHECK(status([](args & a) { a.queries = 0; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.heads = 3, a.kv_heads = 2; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.keys = int64_t{1} << 60; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.kv_type = 2; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.k_stride.row = 30; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.v = nullptr; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.v = test::off_by_one(a.v); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(status([](args & a) { a.dst = test::off_by_one(a.dst); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_attention(&good, test::off_by_one(scratch.data()), scratch.size(), 0, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(ggml_ext_cpu_attention(&good, scratch.data(), scratch.size() - 1, 0, 1) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(ggml_ext_cpu_attention(&good, scratch.data(), scratch.size(), 1, 1) == GGML_EXT_CPU_INVALID_ARGUMENT);
}
