#include "ggml-ext-cpu-ops.h"
#include "kernels_ggml/fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, F16 = 1, I32 = 26;
constexpr int NORMAL = 0, NEOX = 2;

struct rope_params {
    int   n_dims, mode, n_ctx_orig = 0;
    float freq_base = 10000.0f, freq_scale = 1.0f, ext_factor = 0.0f, attn_factor = 1.0f, beta_fast = 32.0f, beta_slow = 1.0f;
};

ggml_tensor * rope(bench & b, ggml_tensor * x, ggml_tensor * positions, ggml_tensor * factors, const rope_params & p) {
    using function = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *, int, int, int, float, float, float, float, float, float);
    return resolve<function>("ggml_rope_ext")(b.ctx, x, positions, factors, p.n_dims, p.mode, p.n_ctx_orig, p.freq_base, p.freq_scale, p.ext_factor,
                                              p.attn_factor, p.beta_fast, p.beta_slow);
}

ggml_tensor * rope_apply(bench & b, ggml_tensor * x, ggml_tensor * pe, int32_t pairs, int32_t first = 0) {
    const ggml_ext_rope_apply_attrs attrs{pairs, first};
    ggml_tensor *                   src[] = {x, pe};
    ggml_tensor *                   out   = nullptr;
    ggml_ext_op_create(b.ctx, GGML_EXT_OP_ROPE_APPLY, 2, src, &attrs, sizeof(attrs), &out);
    return out;
}

// A [D, H, L, 2] input, laid out in different ways within its owner
enum layout {
    plain,
    permuted,
    offset,
    padded_nb1,
    padded_nb2,
    padded_nb3
};

struct input {
    ggml_tensor *owner, *x;

    input(model & b, layout l, int64_t D, int64_t H, int64_t L) {
        const auto view = [&](std::vector<int64_t> ne, size_t off) {
            owner          = b.typed_input(F32, std::move(ne));
            using function = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t, int64_t, size_t, size_t, size_t, size_t);
            x              = resolve<function>("ggml_view_4d")(b.ctx, owner, D, H, L, 2, owner->nb[1], owner->nb[2], owner->nb[3], off);
        };
        switch (l) {
            case plain: owner = x = b.typed_input(F32, {D, H, L, 2}); break;
            case permuted:
                owner = b.typed_input(F32, {D, L, H, 2});
                x     = b.g.ggml_permute(b.ctx, owner, 0, 2, 1, 3);
                break;
            case offset:     view({3 * D, H, L, 2}, static_cast<size_t>(D) * 4); break; // Q, K, V fused: K
            case padded_nb1: view({D + 3, H, L, 2}, 0); break;
            case padded_nb2: view({D, H + 1, L, 2}, 0); break;
            case padded_nb3: view({D, H, L + 2, 2}, 0); break;
        }
    }
};

struct outcome {
    std::vector<float> y;
    std::string        kernels;
};

outcome compute_rope(layout l, int64_t D, int64_t H, int64_t L, const rope_params & p, bool factors, bool type_f16 = false) {
    model         b;
    const input   in(b, l, D, H, L);
    ggml_tensor * positions = b.typed_input(I32, {L});
    ggml_tensor * ff        = factors ? b.weight(F32, {p.n_dims / 2}) : nullptr;
    ggml_tensor * x         = type_f16 ? ops().ggml_cast(b.ctx, in.x, F16) : in.x;
    ggml_tensor * y         = rope(b, x, positions, ff, p);
    b.expand(type_f16 ? ops().ggml_cast(b.ctx, y, F32) : y);
    b.allocate();
    b.put(in.owner, random_floats(b.g.base.ggml_nbytes(in.owner) / 4, 1));
    std::vector<int32_t> pos;
    for (int64_t i = 0; i < L; ++i) {
        pos.push_back(static_cast<int32_t>(i * i * 3 % 500));
    }
    b.put(positions, pos);
    if (factors) {
        auto f = random_floats(static_cast<size_t>(p.n_dims / 2), 2, 0.4f);
        for (float & v : f) {
            v += 1.0f;
        }
        b.put(ff, f);
    }
    REQUIRE(b.compute() == 0);
    return {b.get(type_f16 ? b.g.base.ggml_graph_node(b.graph, b.g.base.ggml_graph_n_nodes(b.graph) - 1) : y), b.kernels()};
}

// [[cos, -sin], [sin, cos]] for each of L positions and P pairs
std::vector<float> matrices(int64_t P, int64_t L) {
    std::vector<float> pe;
    for (int64_t l = 0; l < L; ++l) {
        for (int64_t i = 0; i < P; ++i) {
            const double a = static_cast<double>(l) * std::pow(100.0, -static_cast<double>(i) / static_cast<double>(P));
            for (const double v : {std::cos(a), -std::sin(a), std::sin(a), std::cos(a)}) {
                pe.push_back(static_cast<float>(v));
            }
        }
    }
    return pe;
}

// rotates rows of D features in double; the position of row r is r / H % L
std::vector<double> rotated(const std::vector<double> & x, const std::vector<float> & pe, int64_t D, int64_t H, int64_t L, int64_t P, bool split, int64_t first) {
    std::vector<double> y = x;
    for (int64_t r = 0; r < static_cast<int64_t>(x.size()) / D; ++r) {
        for (int64_t i = 0; i < P; ++i) {
            const auto    p = static_cast<size_t>(r * D + first + (split ? i : 2 * i)), q = static_cast<size_t>(r * D + first + (split ? i + P : 2 * i + 1));
            const float * m = &pe[static_cast<size_t>((r / H % L * P + i) * 4)];
            y[p]            = m[0] * x[p] + m[1] * x[q];
            y[q]            = m[2] * x[p] + m[3] * x[q];
        }
    }
    return y;
}

void check_close(const std::vector<float> & y, const std::vector<double> & expected, double tolerance) {
    REQUIRE(y.size() == expected.size());
    for (size_t i = 0; i < y.size(); ++i) {
        CAPTURE(i);
        REQUIRE(std::fabs(y[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i])));
    }
}

} // namespace

TEST_CASE("ROPE-2: the override equals ggml's ROPE: partial rotation, permuted, offset and padded inputs, one head") {
    for (const int mode : {NORMAL, NEOX}) {
        for (const layout l : {plain, permuted, offset, padded_nb1, padded_nb2, padded_nb3}) {
            for (const int64_t heads : {1, 3}) {
                CAPTURE(mode);
                CAPTURE(static_cast<int>(l));
                CAPTURE(heads);
                const rope_params p{40, mode};
                const outcome     stock = compute_rope(l, 64, heads, 9, p, false);
                REQUIRE(stock.kernels == "");
                kernel_library library;
                const outcome  ours = compute_rope(l, 64, heads, 9, p, false);
                CHECK(ours.kernels == (mode == NEOX ? "cpu.rope" : "")); // not preferred in mode normal
                check_close(ours.y, std::vector<double>(stock.y.begin(), stock.y.end()), 2e-6);
            }
        }
    }
}

TEST_CASE("ROPE-2: frequency factors and YaRN parameters as ggml has them") {
    for (const int mode : {NORMAL, NEOX}) {
        for (const bool factors : {false, true}) {
            for (const bool yarn : {false, true}) {
                CAPTURE(mode);
                CAPTURE(factors);
                CAPTURE(yarn);
                rope_params p{64, mode};
                p.freq_base = 500000.0f;
                if (yarn) {
                    p.n_ctx_orig  = 256;
                    p.freq_scale  = 0.25f;
                    p.ext_factor  = 1.0f;
                    p.attn_factor = 0.9f;
                }
                const outcome  stock = compute_rope(plain, 64, 2, 21, p, factors);
                kernel_library library;
                const outcome  ours = compute_rope(plain, 64, 2, 21, p, factors);
                CHECK(ours.kernels == (mode == NEOX ? "cpu.rope" : "")); // not preferred in mode normal
                check_close(ours.y, std::vector<double>(stock.y.begin(), stock.y.end()), 1e-5); // angles up to 500, in float
            }
        }
    }
}

TEST_CASE("ROPE-2: half precision stays ggml's") {
    const rope_params p{64, NEOX};
    const outcome     stock = compute_rope(plain, 64, 2, 5, p, false, true);
    kernel_library    library;
    const outcome     ours = compute_rope(plain, 64, 2, 5, p, false, true);
    CHECK(ours.kernels == "");
    CHECK(ours.y == stock.y);
}

TEST_CASE("ROPE-1: sd.rope_apply.v1: interleaved and split pairs, partial rotation, strided rows and encodings") {
    kernel_library library;
    const int64_t  D = 64, H = 3, L = 7;
    for (const int32_t pairs : {GGML_EXT_ROPE_INTERLEAVED, GGML_EXT_ROPE_SPLIT_HALF}) {
        for (const int32_t first : {0, 8}) {
            for (const bool strided : {false, true}) {
                CAPTURE(pairs);
                CAPTURE(first);
                CAPTURE(strided);
                const int64_t P = first == 0 ? D / 2 : 12;
                model         b;
                const input   in(b, strided ? offset : plain, D, H, L);
                ggml_tensor * owner = b.typed_input(F32, {2, 2, P, strided ? 2 * L : L});
                ggml_tensor * pe    = owner;
                if (strided) { // every second position
                    using function = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t, int64_t, size_t, size_t, size_t, size_t);
                    pe             = resolve<function>("ggml_view_4d")(b.ctx, owner, 2, 2, P, L, owner->nb[1], owner->nb[2], 2 * owner->nb[3], 0);
                }
                ggml_tensor * y = rope_apply(b, in.x, pe, pairs, first);
                REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
                b.expand(y);
                b.allocate();
                const auto xv  = random_floats(b.g.base.ggml_nbytes(in.owner) / 4, 3);
                const auto all = matrices(P, owner->ne[3]);
                b.put(in.owner, xv);
                b.put(owner, all);
                REQUIRE(b.compute() == 0);
                CHECK(b.kernels() == "cpu.rope_apply");
                std::vector<double> x;
                for (int64_t r = 0; r < 2 * L * H; ++r) {
                    const auto row = xv.begin() + (strided ? r * 3 * D + D : r * D);
                    x.insert(x.end(), row, row + D);
                }
                std::vector<float> used;
                for (int64_t l = 0; l < L; ++l) {
                    const auto at = all.begin() + (strided ? 2 * l : l) * P * 4;
                    used.insert(used.end(), at, at + P * 4);
                }
                check_close(b.get(y), rotated(x, used, D, H, L, P, pairs == GGML_EXT_ROPE_SPLIT_HALF, first), 1e-6);
            }
        }
    }
}

TEST_CASE("ROPE-1: malformed sources are refused with the reason") {
    kernel_library library;
    model          b;
    ggml_tensor *  x = b.weight(F32, {64, 2, 5});
    const struct {
        const char *         reason;
        std::vector<int64_t> pe;
        int                  type;
        int32_t              pairs, first;
    } cases[] = {
        {"pairs is 2", {2, 2, 32, 5}, F32, 2, 0},
        {"pe has 4 positions", {2, 2, 32, 4}, F32, 0, 0},
        {"pe has type F16", {2, 2, 32, 5}, F16, 0, 0},
        {"shape [4, 32", {4, 32, 5}, F32, 0, 0},
        {"features 2 to 66", {2, 2, 32, 5}, F32, 0, 2},
        {"features 3 to 7", {2, 2, 2, 5}, F32, 0, 3},
    };
    for (const auto & c : cases) {
        CAPTURE(c.reason);
        CHECK(rope_apply(b, x, b.weight(c.type, c.pe), c.pairs, c.first) == nullptr);
        CHECK_MESSAGE(std::string(ggml_ext_last_error()).find(c.reason) != std::string::npos, ggml_ext_last_error());
    }
    CHECK(rope_apply(b, b.weight(F16, {64, 2, 5}), b.weight(F32, {2, 2, 32, 5}), 0) == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("x has type F16, expected F32") != std::string::npos);
}

TEST_CASE("ROPE-3: RMS_NORM -> MUL -> rotation is one step, for the built-in in both modes and for the custom operator") {
    kernel_library library;
    const int64_t  D = 64, H = 3, L = 7;
    enum {
        custom,
        normal,
        neox
    };
    for (const int kind : {custom, normal, neox}) {
        for (const layout l : {plain, offset, permuted}) {
            const bool builtin = kind != custom, split = kind == neox;
            CAPTURE(kind);
            CAPTURE(static_cast<int>(l));
            model         b;
            const input   in(b, l, D, H, L);
            ggml_tensor * weight = b.weight(F32, {D});
            ggml_tensor * normed = b.g.ggml_mul(b.ctx, b.g.ggml_rms_norm(b.ctx, in.x, 1e-6f), weight);
            ggml_tensor * aux    = builtin ? b.typed_input(I32, {L}) : b.typed_input(F32, {2, 2, D / 2, L});
            ggml_tensor * y      = builtin ? rope(b, normed, aux, nullptr, {static_cast<int>(D), split ? NEOX : NORMAL, 0, 100.0f}) : rope_apply(b, normed, aux, GGML_EXT_ROPE_INTERLEAVED);
            REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
            b.expand(y);
            b.expand(b.g.ggml_sqr(b.ctx, y)); // below four nodes nothing keeps the output from taking the input's place
            b.allocate();
            const auto xv = random_floats(b.g.base.ggml_nbytes(in.owner) / 4, 4), wv = random_floats(static_cast<size_t>(D), 5);
            const auto pe = matrices(D / 2, L); // base 100, positions 0 .. L-1: what the built-in has too
            b.put(in.owner, xv);
            b.put(weight, wv);
            if (builtin) {
                std::vector<int32_t> positions;
                for (int32_t i = 0; i < L; ++i) {
                    positions.push_back(i);
                }
                b.put(aux, positions);
            } else {
                b.put(aux, pe);
            }
            REQUIRE(b.compute() == 0);
            CHECK_MESSAGE(b.kernels() == "cpu.rms_norm_rope", b.refusals());
            std::vector<double> x;
            for (int64_t r = 0; r < 2 * L * H; ++r) {
                const int64_t at      = l == permuted ? (r / (L * H) * H + r % H) * L + r / H % L : r;
                const auto    row     = xv.begin() + (l == offset ? at * 3 * D + D : at * D);
                double        squares = 0;
                for (int64_t i = 0; i < D; ++i) {
                    squares += static_cast<double>(row[i]) * row[i];
                }
                for (int64_t i = 0; i < D; ++i) {
                    x.push_back(row[i] / std::sqrt(squares / static_cast<double>(D) + 1e-6) * wv[static_cast<size_t>(i)]);
                }
            }
            check_close(b.get(y), rotated(x, pe, D, H, L, D / 2, split, 0), 3e-6);
        }
    }
}

TEST_CASE("ROPE-3: a normalisation with another reader, or a weight with rows, is not fused; the results stay right") {
    const int64_t D = 32, L = 6;
    for (const bool read_twice : {false, true}) {
        CAPTURE(read_twice);
        const auto compute = [&](std::string & kernels) {
            model         b;
            ggml_tensor * x      = b.typed_input(F32, {D, 2, L});
            ggml_tensor * weight = b.weight(F32, {D, read_twice ? 1 : 2});
            ggml_tensor * norm   = b.g.ggml_rms_norm(b.ctx, x, 1e-6f);
            ggml_tensor * p      = b.typed_input(I32, {L});
            ggml_tensor * y      = rope(b, b.g.ggml_mul(b.ctx, norm, weight), p, nullptr, {static_cast<int>(D), NEOX});
            b.expand(y);
            if (read_twice) {
                b.expand(b.g.ggml_sqr(b.ctx, norm));
            }
            b.allocate();
            b.put(x, random_floats(static_cast<size_t>(D * 2 * L), 6));
            b.put(weight, random_floats(static_cast<size_t>(D * weight->ne[1]), 7));
            b.put(p, std::vector<int32_t>{5, 0, 17, 3, 250, 1});
            REQUIRE(b.compute() == 0);
            kernels = b.kernels();
            return b.get(y);
        };
        std::string    stock_kernels, kernels;
        const auto     stock = compute(stock_kernels);
        kernel_library library;
        const auto     ours = compute(kernels);
        CHECK(stock_kernels == "");
        CHECK(kernels == "cpu.rope");
        check_close(ours, std::vector<double>(stock.begin(), stock.end()), 2e-6);
    }
}

TEST_CASE("ROPE-3: a product that is rotated and gives the frequency factors, too, is not fused; the result stays ggml's") {
    const int64_t D = 64;
    for (const bool of_norm : {false, true}) {
        CAPTURE(of_norm);
        const auto compute = [&](std::string & kernels) {
            model         b;
            ggml_tensor * x       = b.typed_input(F32, {D});
            ggml_tensor * weight  = b.weight(F32, {D});
            ggml_tensor * norm    = b.g.ggml_rms_norm(b.ctx, x, 1e-6f);
            ggml_tensor * product = b.g.ggml_mul(b.ctx, norm, weight);
            ggml_tensor * p       = b.typed_input(I32, {1});
            ggml_tensor * y       = rope(b, product, p, of_norm ? norm : product, {static_cast<int>(D), NEOX});
            b.expand(y);
            b.expand(b.g.ggml_sqr(b.ctx, y));
            b.allocate();
            auto xv = random_floats(static_cast<size_t>(D), 6), wv = random_floats(static_cast<size_t>(D), 7);
            for (float * v = xv.data(); v != xv.data() + D; ++v) {
                *v += *v < 0 ? -1.0f : 1.0f; // factors divide
            }
            for (float * v = wv.data(); v != wv.data() + D; ++v) {
                *v += *v < 0 ? -1.0f : 1.0f;
            }
            b.put(x, xv);
            b.put(weight, wv);
            b.put(p, std::vector<int32_t>{7});
            REQUIRE(b.compute() == 0);
            kernels = b.kernels();
            return b.get(y);
        };
        std::string    stock_kernels, kernels;
        const auto     stock = compute(stock_kernels);
        kernel_library library;
        const auto     ours = compute(kernels);
        CHECK(stock_kernels == "");
        CHECK(kernels == "cpu.rope");
        check_close(ours, std::vector<double>(stock.begin(), stock.end()), 1e-5);
    }
}
