#include "kernels_ggml/fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, F16 = 1;

// Halves that are easy to tell: n/64 for n in -128..127.
uint16_t half_of(int n) {
    uint16_t sign = n < 0 ? 0x8000 : 0, exponent = 15 - 6;
    auto     m = static_cast<unsigned>(std::abs(n));
    if (m == 0) {
        return sign;
    }
    unsigned top = 0;
    while (m >> (top + 1) != 0) {
        top++;
    }
    exponent = static_cast<uint16_t>(exponent + top);
    return static_cast<uint16_t>(sign | exponent << 10 | ((m << (10 - top)) & 1023));
}

int step(size_t i, unsigned seed) { return static_cast<int>((i * 2654435761u + seed * 40503u) >> 7 & 255) - 128; }

struct problem {
    int64_t queries, keys, d_k, d_v, heads, kv_heads, batches;
    int     kv_type    = F32;
    bool    mask       = false;
    float   max_bias   = 0;
    float   softcap    = 0;
    bool    sinks      = false;
    bool    interleave = true;  // heads inside a token's row, seen through PERMUTE
    bool    fused      = false; // q, k and v of a token one after the other in one row; sizes and numbers of heads are the same
};

struct attention {
    ggml_tensor *q, *k, *v, *qkv = nullptr, *mask = nullptr, *sinks = nullptr, *y;
    problem      p;

    attention(model & b, const problem & of) : p(of) {
        qkv                 = p.fused ? rows(b, F32, p.d_k, 3 * p.heads, p.queries) : nullptr;
        q                   = p.fused ? part(b, 0) : rows(b, F32, p.d_k, p.heads, p.queries);
        k                   = p.fused ? part(b, 1) : rows(b, p.kv_type, p.d_k, p.kv_heads, p.keys);
        v                   = p.fused ? part(b, 2) : rows(b, p.kv_type, p.d_v, p.kv_heads, p.keys);
        mask                = p.mask ? b.typed_input(F16, {p.keys, p.queries}) : nullptr;
        const auto heads_of = [&](ggml_tensor * t) { return p.interleave ? b.g.ggml_permute(b.ctx, t, 0, 2, 1, 3) : t; };
        y                   = resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *, ggml_tensor *, float, float, float)>(
            "ggml_flash_attn_ext")(b.ctx, heads_of(q), heads_of(k), heads_of(v), mask, 0.5f, p.max_bias, p.softcap);
        if (p.sinks) {
            sinks = b.typed_input(F32, {p.heads});
            resolve<void (*)(ggml_tensor *, ggml_tensor *)>("ggml_flash_attn_ext_add_sinks")(y, sinks);
        }
        b.expand(y);
        b.allocate();
        if (p.fused) {
            put(b, qkv, 1);
        } else {
            put(b, q, 1);
            put(b, k, 2);
            put(b, v, 3);
        }
        if (mask != nullptr) {
            std::vector<uint16_t> bits(static_cast<size_t>(p.keys * p.queries));
            for (size_t i = 0; i < bits.size(); ++i) {
                bits[i] = masked(i) ? 0xFC00 : half_of(step(i, 4));
            }
            b.put(mask, bits);
        }
        if (sinks != nullptr) {
            b.put(sinks, std::vector<float>(static_cast<size_t>(p.heads), 0.25f));
        }
    }

    // of query i / keys: a third of the keys, and all that come after the query's own place
    bool masked(size_t i) const {
        const auto keys = static_cast<size_t>(p.keys);
        return i % keys % 3 == 1 || i % keys > i / keys + keys / 2;
    }

    std::vector<double> exact() const {
        std::vector<double> out;
        for (int64_t b = 0; b < p.batches; ++b) {
            for (int64_t i = 0; i < p.queries; ++i) {
                for (int64_t h = 0; h < p.heads; ++h) {
                    const int64_t       kv    = h / (p.heads / p.kv_heads);
                    const double        power = std::exp2(std::floor(std::log2(static_cast<double>(p.heads))));
                    const double        slope = p.max_bias == 0 ? 1 : std::exp2(-p.max_bias / power * (static_cast<double>(h) + 1));
                    double              most = -INFINITY, total = 0;
                    std::vector<double> scores, row(static_cast<size_t>(p.d_v), 0.0);
                    for (int64_t j = 0; j < p.keys; ++j) {
                        double s = 0;
                        for (int64_t d = 0; d < p.d_k; ++d) {
                            s += value(p.heads, p.queries, p.d_k, b, h, i, d, 1) * value(p.kv_heads, p.keys, p.d_k, b, kv, j, d, 2);
                        }
                        s *= 0.5;
                        const auto m = static_cast<size_t>(i * p.keys + j);
                        if (p.mask) {
                            s = masked(m) ? -INFINITY : s + slope * step(m, 4) / 64;
                        }
                        scores.push_back(s);
                        most = std::fmax(most, s);
                    }
                    for (int64_t j = 0; j < p.keys; ++j) {
                        const double e = std::exp(scores[static_cast<size_t>(j)] - most);
                        total += e;
                        for (int64_t d = 0; d < p.d_v; ++d) {
                            row[static_cast<size_t>(d)] += e * value(p.kv_heads, p.keys, p.d_v, b, kv, j, d, 3);
                        }
                    }
                    for (const double r : row) {
                        out.push_back(r / total);
                    }
                }
            }
        }
        return out;
    }

private:
    ggml_tensor * rows(model & b, int type, int64_t d, int64_t heads, int64_t tokens) const {
        return b.typed_input(type, p.interleave ? std::vector<int64_t>{d, heads, tokens, p.batches} : std::vector<int64_t>{d, tokens, heads, p.batches});
    }

    ggml_tensor * part(model & b, int64_t n) const {
        return resolve<ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t, int64_t, size_t, size_t, size_t, size_t)>(
            "ggml_view_4d")(b.ctx, qkv, p.d_k, p.heads, p.queries, p.batches, qkv->nb[1], qkv->nb[2], qkv->nb[3],
                            static_cast<size_t>(n * p.heads) * qkv->nb[1]);
    }

    double value(int64_t heads, int64_t tokens, int64_t size, int64_t b, int64_t h, int64_t i, int64_t d, unsigned seed) const {
        if (p.fused) {
            const int64_t before = ((b * tokens + i) * 3 + seed - 1) * heads + h;
            return step(static_cast<size_t>(before * size + d), 1) / 64.0;
        }
        const int64_t row = p.interleave ? (b * tokens + i) * heads + h : (b * heads + h) * tokens + i;
        return step(static_cast<size_t>(row * size + d), seed) / 64.0;
    }

    static void put(model & b, ggml_tensor * t, unsigned seed) {
        const auto            n = static_cast<size_t>(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
        std::vector<float>    floats;
        std::vector<uint16_t> halves;
        for (size_t i = 0; i < n; ++i) {
            floats.push_back(static_cast<float>(step(i, seed)) / 64);
            halves.push_back(half_of(step(i, seed)));
        }
        t->type == F16 ? b.put(t, halves) : b.put(t, floats);
    }
};

} // namespace

TEST_CASE("KERNEL-1: FLASH_ATTN_EXT in F32 and F16, with masks, shared heads, batches, ALiBi and views of one fused buffer, against double precision") {
    kernel_library             library;
    const std::vector<problem> problems = {{16, 16, 32, 32, 12, 12, 1},
                                           {128, 128, 32, 32, 4, 4, 2, F32, true},
                                           {33, 200, 64, 64, 6, 2, 1, F16, true},
                                           {8, 70, 24, 40, 2, 1, 3, F16},
                                           {4, 50, 32, 32, 2, 2, 1},
                                           {20, 31, 16, 16, 4, 4, 1, F32, true, 8.0f},
                                           {12, 65, 32, 32, 3, 3, 1, F16, true, 0, 0, false, false},
                                           {19, 19, 32, 32, 12, 12, 2, F32, true, 0, 0, false, true, true}};
    for (const problem & p : problems) {
        for (const int threads : {1, 2}) {
            CAPTURE(p.keys);
            CAPTURE(threads);
            model           b(threads);
            const attention a(b, p);
            REQUIRE(b.compute() == 0);
            CHECK(b.kernels() == "cpu.flash_attn_ext");
            const auto y = b.get(a.y);
            const auto e = a.exact();
            REQUIRE(y.size() == e.size());
            for (size_t i = 0; i < y.size(); ++i) {
                CAPTURE(i);
                REQUIRE(std::fabs(y[i] - e[i]) <= 5e-6 * (1 + std::fabs(e[i])));
            }
        }
    }
}

TEST_CASE("KERNEL-1: FLASH_ATTN_EXT with few queries, a softcap, sinks or a max_bias below 0 stays ggml's, with the reason") {
    kernel_library library;
    struct refused {
        problem      p;
        const char * reason;
    };
    problem few{3, 64, 32, 32, 2, 2, 1}, few_f16{7, 64, 32, 32, 2, 2, 1, F16}, capped{16, 64, 32, 32, 2, 2, 1}, sinking = capped;
    problem negative{16, 64, 32, 32, 2, 2, 1, F32, true}, not_a_number = negative;
    capped.softcap        = 5;
    sinking.sinks         = true;
    negative.max_bias     = -1;
    not_a_number.max_bias = NAN;
    for (const refused & r : {refused{few, "3 queries"}, refused{few_f16, "7 queries"}, refused{capped, "softcap 5"}, refused{sinking, "sinks"},
                              refused{negative, "max_bias is -1"}, refused{not_a_number, "max_bias is nan"}}) {
        CAPTURE(r.reason);
        model           b;
        const attention a(b, r.p);
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "");
        CHECK(b.refusals().find(r.reason) != std::string::npos);
        if (r.p.mask) { // without a slope
            attention unbiased  = a;
            unbiased.p.max_bias = 0;
            const auto y        = b.get(a.y);
            const auto e        = unbiased.exact();
            for (size_t i = 0; i < y.size(); ++i) {
                CAPTURE(i);
                REQUIRE(std::fabs(y[i] - e[i]) <= 1e-4 * (1 + std::fabs(e[i])));
            }
        }
    }
}
