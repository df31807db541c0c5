// RoPE and ConvRot kernels as ggml nodes on the GPU, against double precision.

#include "fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int NORMAL = 0, NEOX = 2;

struct rope_params {
    int64_t D = 128, H = 4, L = 33, N = 2;
    int     n_dims = 128, mode = NORMAL;
    bool    factors = false, strided = false;
};

ggml_tensor * rope_node(model & m, ggml_tensor * x, ggml_tensor * positions, ggml_tensor * factors, const rope_params & p) {
    using function = ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *, int, int, int, float, float, float, float, float, float);
    return resolve<function>("ggml_rope_ext")(m.ctx, x, positions, factors, p.n_dims, p.mode, 0, 10000.0f, 1.0f, 0.0f, 1.0f, 32.0f, 1.0f);
}

std::vector<int32_t> position_values(int64_t L) {
    std::vector<int32_t> v;
    for (int64_t i = 0; i < L; ++i) {
        v.push_back(static_cast<int32_t>(i * 7 % 300));
    }
    return v;
}

// rotates rows of x, [D, H, L, N], in place
void rotate(std::vector<double> & x, const rope_params & p, const std::vector<int32_t> & positions, const std::vector<float> & factors) {
    for (size_t row = 0; row < x.size() / static_cast<size_t>(p.D); ++row) {
        const auto position = static_cast<double>(positions[row / static_cast<size_t>(p.H) % static_cast<size_t>(p.L)]);
        for (int64_t i = 0; i < p.n_dims / 2; ++i) {
            double angle = position * std::pow(10000.0, -2.0 * static_cast<double>(i) / p.n_dims);
            if (p.factors) {
                angle /= factors[static_cast<size_t>(i)];
            }
            const size_t at = row * static_cast<size_t>(p.D);
            const size_t a  = at + static_cast<size_t>(p.mode == NEOX ? i : 2 * i);
            const size_t b  = at + static_cast<size_t>(p.mode == NEOX ? i + p.n_dims / 2 : 2 * i + 1);
            const double xa = x[a], xb = x[b];
            x[a] = xa * std::cos(angle) - xb * std::sin(angle);
            x[b] = xa * std::sin(angle) + xb * std::cos(angle);
        }
    }
}

std::vector<double> normed(const std::vector<float> & x, int64_t D, double eps, const std::vector<float> & weight) {
    std::vector<double> y(x.begin(), x.end());
    for (size_t row = 0; row < y.size() / static_cast<size_t>(D); ++row) {
        double * r   = &y[row * static_cast<size_t>(D)];
        double   sum = 0;
        for (int64_t i = 0; i < D; ++i) {
            sum += r[i] * r[i];
        }
        const double scale = 1 / std::sqrt(sum / static_cast<double>(D) + eps);
        for (int64_t i = 0; i < D; ++i) {
            r[i] *= scale * weight[static_cast<size_t>(i)];
        }
    }
    return y;
}

// Element (row, column) of the rotation of 256 features, from its definition
double hadamard(int64_t row, int64_t column) {
    static const double H4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
    double              v        = 1;
    for (int i = 0; i < 4; ++i, row /= 4, column /= 4) {
        v *= H4[row % 4][column % 4] / 2;
    }
    return v;
}

// The packed tensor against rows in double: scales within rounding, and what it stands for within half a step.
void check_packed(const std::vector<int8_t> & packed, const std::vector<double> & x, int64_t M, int64_t K, int64_t group) {
    const int64_t padded = (M + 3) / 4 * 4;
    REQUIRE(static_cast<int64_t>(packed.size()) == padded * K + 4 * M);
    int bad = 0;
    for (int64_t m = 0; m < M; ++m) {
        std::vector<double> y(static_cast<size_t>(K));
        double              largest = 0;
        for (int64_t k = 0; k < K; ++k) {
            double sum = 0;
            if (group == 1) {
                sum = x[static_cast<size_t>(m * K + k)];
            } else {
                for (int64_t j = 0; j < 256; ++j) {
                    sum += hadamard(k % 256, j) * x[static_cast<size_t>(m * K + k / 256 * 256 + j)];
                }
            }
            y[static_cast<size_t>(k)] = sum;
            largest                   = std::max(largest, std::fabs(sum));
        }
        float scale;
        std::memcpy(&scale, &packed[static_cast<size_t>(padded * K + 4 * m)], 4);
        CHECK(scale == doctest::Approx(largest / 127).epsilon(1e-5));
        for (int64_t k = 0; k < K; ++k) {
            bad += std::fabs(packed[static_cast<size_t>(m * K + k)] * static_cast<double>(scale) - y[static_cast<size_t>(k)]) > 0.501 * scale;
        }
    }
    CHECK(bad == 0);
}

} // namespace

TEST_CASE("ROPE-2: ROPE on the GPU: modes, partial rotation, factors, strided rows, one head, many positions") {
    kernel_library library;
    for (const rope_params & p : {rope_params{}, rope_params{128, 4, 33, 2, 128, NEOX}, rope_params{128, 4, 9, 1, 64, NORMAL}, rope_params{80, 3, 5, 2, 32, NEOX},
                                  rope_params{128, 1, 17, 1, 128, NORMAL}, rope_params{64, 2, 8, 2, 64, NEOX, true}, rope_params{64, 2, 8, 2, 64, NORMAL, true, true},
                                  rope_params{2, 1, 1, 1, 2, NORMAL}, rope_params{16, 1, 66000, 1, 16, NORMAL}}) {
        CAPTURE(p.D);
        CAPTURE(p.mode);
        CAPTURE(p.n_dims);
        model         m;
        ggml_tensor * owner     = m.input(F32, {p.D, p.strided ? p.H + 1 : p.H, p.L, p.N});
        using view4             = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t, int64_t, size_t, size_t, size_t, size_t);
        ggml_tensor * x         = p.strided ? resolve<view4>("ggml_view_4d")(m.ctx, owner, p.D, p.H, p.L, p.N, owner->nb[1], owner->nb[2], owner->nb[3], 0) : owner;
        ggml_tensor * positions = m.input(I32, {p.L});
        ggml_tensor * factors   = p.factors ? m.weight(F32, {p.n_dims / 2}) : nullptr;
        ggml_tensor * y         = rope_node(m, x, positions, factors, p);
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == "cuda.rope");
        const auto xv = random_floats(m.g.base.ggml_nbytes(owner) / 4, 1);
        const auto pv = position_values(p.L);
        auto       fv = random_floats(static_cast<size_t>(p.n_dims / 2), 2, 0.25f);
        for (float & f : fv) {
            f += 1.0f;
        }
        m.put(owner, xv);
        m.put(positions, pv);
        if (p.factors) {
            m.put(factors, fv);
        }
        m.compute();
        std::vector<double> expected;
        const size_t        rows = static_cast<size_t>(p.H * p.L * p.N), D = static_cast<size_t>(p.D), H = static_cast<size_t>(p.H);
        for (size_t r = 0; r < rows; ++r) {
            const size_t from = p.strided ? (r / H * (H + 1) + r % H) * D : r * D;
            expected.insert(expected.end(), xv.begin() + static_cast<ptrdiff_t>(from), xv.begin() + static_cast<ptrdiff_t>(from + D));
        }
        rotate(expected, p, pv, fv);
        check_close(m.take<float>(y), expected, 2e-4); // float angles up to 300 rad
    }
}

TEST_CASE("ROPE-1: sd.rope_apply.v1 on the GPU") {
    kernel_library library;
    for (const int32_t pairs : {GGML_EXT_ROPE_INTERLEAVED, GGML_EXT_ROPE_SPLIT_HALF}) {
        const int64_t                   D = 72, H = 3, L = 7, P = 16, first = 8;
        const ggml_ext_rope_apply_attrs attrs{pairs, first};
        model                           m;
        ggml_tensor *                   x  = m.input(F32, {D, H, L, 2});
        ggml_tensor *                   pe = m.input(F32, {2, 2, P, L});
        ggml_tensor *                   y  = m.node(GGML_EXT_OP_ROPE_APPLY, {x, pe}, &attrs, sizeof(attrs));
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == "cuda.rope_apply");
        const auto xv = random_floats(static_cast<size_t>(D * H * L * 2), 3), pv = random_floats(static_cast<size_t>(4 * P * L), 4);
        m.put(x, xv);
        m.put(pe, pv);
        m.compute();
        std::vector<double> expected(xv.begin(), xv.end());
        for (int64_t r = 0; r < H * L * 2; ++r) {
            for (int64_t i = 0; i < P; ++i) {
                const bool    split = pairs == GGML_EXT_ROPE_SPLIT_HALF;
                const auto    a     = static_cast<size_t>(r * D + first + (split ? i : 2 * i));
                const auto    b     = static_cast<size_t>(r * D + first + (split ? i + P : 2 * i + 1));
                const float * k     = &pv[static_cast<size_t>((r / H % L * P + i) * 4)];
                expected[a]         = static_cast<double>(k[0]) * xv[a] + static_cast<double>(k[1]) * xv[b];
                expected[b]         = static_cast<double>(k[2]) * xv[a] + static_cast<double>(k[3]) * xv[b];
            }
        }
        check_close(m.take<float>(y), expected, 1e-6);
    }
}

TEST_CASE("ROPE-3: RMS_NORM, MUL, ROPE as one kernel, also scaled into an F16 copy") {
    kernel_library library;
    for (const bool copied : {false, true}) {
        rope_params p;
        p.D = p.n_dims = 128, p.H = 24, p.L = 40, p.N = 1;
        model         m;
        ggml_tensor * x         = m.input(F32, {p.D, p.H, p.L});
        ggml_tensor * w         = m.weight(F32, {p.D});
        ggml_tensor * positions = m.input(I32, {p.L});
        ggml_tensor * y         = rope_node(m, m.g.ggml_mul(m.ctx, m.g.ggml_rms_norm(m.ctx, x, 1e-6f), w), positions, nullptr, p);
        if (copied) {
            y = ops().ggml_cast(m.ctx, m.g.ggml_scale(m.ctx, y, 0.5f), F16);
        }
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == "cuda.rms_norm_rope");
        CHECK(m.g.base.ggml_graph_n_nodes(m.graph) == (copied ? 5 : 3));
        const auto xv = random_floats(static_cast<size_t>(p.D * p.H * p.L), 5), wv = random_floats(static_cast<size_t>(p.D), 6);
        const auto pv = position_values(p.L);
        m.put(x, xv);
        m.put(w, wv);
        m.put(positions, pv);
        m.compute();
        auto expected = normed(xv, p.D, 1e-6, wv);
        rotate(expected, p, pv, {});
        if (!copied) {
            check_close(m.take<float>(y), expected, 2e-4);
            continue;
        }
        std::vector<float> out(expected.size());
        const auto         halves = m.take<uint16_t>(y);
        resolve<void (*)(const uint16_t *, float *, int64_t)>("ggml_fp16_to_fp32_row")(halves.data(), out.data(), static_cast<int64_t>(out.size()));
        for (double & v : expected) {
            v *= 0.5;
        }
        check_close(out, expected, 1e-3);
    }
}

TEST_CASE("I8-2: sd.quantize_i8_convrot.v1 on the GPU, long rows too; other groups go to the CPU through the scheduler") {
    kernel_library library;
    for (const auto & [M, K] : {std::pair<int64_t, int64_t>{5, 256}, {7, 3072}, {3, 12288}, {2, 65536}}) {
        for (const int32_t group : {1, 256}) {
            CAPTURE(K);
            CAPTURE(group);
            const ggml_ext_quantize_i8_convrot_attrs attrs{group};
            model                                    m;
            ggml_tensor *                            x = m.input(F32, {K, M});
            ggml_tensor *                            y = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {x}, &attrs, sizeof(attrs));
            m.expand(y);
            m.allocate();
            CHECK(m.kernels() == "cuda.quantize_i8_convrot");
            const auto xv = random_floats(static_cast<size_t>(M * K), 7);
            m.put(x, xv);
            m.compute();
            check_packed(m.take<int8_t>(y), {xv.begin(), xv.end()}, M, K, group);
        }
    }
    const ggml_ext_quantize_i8_convrot_attrs attrs{16};
    model                                    m;
    ggml_tensor *                            y = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {m.input(F32, {256, 4})}, &attrs, sizeof(attrs));
    CHECK_FALSE(m.g.base.ggml_backend_dev_supports_op(attached_gpu(), y));
}

TEST_CASE("ROT-1: what comes before ConvRot, in one kernel with it") {
    kernel_library                           library;
    const ggml_ext_quantize_i8_convrot_attrs attrs{256};
    const int64_t                            M = 6, K = 512;
    for (const std::string kind : {"scale", "norm", "swiglu", "swiglu_split"}) {
        CAPTURE(kind);
        model         m;
        const int64_t width = kind == "swiglu" ? 2 * K : K;
        ggml_tensor * x     = m.input(F32, {width, M});
        ggml_tensor * other = kind == "swiglu_split" ? m.input(F32, {K, M}) : nullptr;
        ggml_tensor * w     = kind == "norm" ? m.weight(F32, {K}) : nullptr;
        ggml_tensor * t     = kind == "scale"    ? m.g.ggml_scale(m.ctx, x, 0.75f)
                              : kind == "norm"   ? m.g.ggml_mul(m.ctx, m.g.ggml_rms_norm(m.ctx, x, 1e-6f), w)
                              : kind == "swiglu" ? ops().ggml_swiglu(m.ctx, x)
                                                 : ops().ggml_swiglu_split(m.ctx, x, other);
        ggml_tensor * y     = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {t}, &attrs, sizeof(attrs));
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == (kind == "scale" ? "cuda.scale_convrot" : kind == "norm" ? "cuda.rms_norm_convrot"
                                                                                      : "cuda.swiglu_convrot"));
        const auto xv = random_floats(static_cast<size_t>(width * M), 8), ov = random_floats(static_cast<size_t>(K * M), 9);
        const auto wv = random_floats(static_cast<size_t>(K), 10);
        m.put(x, xv);
        if (other != nullptr) {
            m.put(other, ov);
        }
        if (w != nullptr) {
            m.put(w, wv);
        }
        m.compute();
        std::vector<double> rows(static_cast<size_t>(K * M));
        for (size_t i = 0; i < rows.size(); ++i) {
            const size_t r = i / static_cast<size_t>(K), k = i % static_cast<size_t>(K);
            const size_t at = r * static_cast<size_t>(width) + k;
            const double a = xv[at], gate = kind == "swiglu" ? xv[at + static_cast<size_t>(K)] : ov[i];
            rows[i] = kind == "scale" ? 0.75 * a : a / (1 + std::exp(-a)) * gate;
        }
        check_packed(m.take<int8_t>(y), kind == "norm" ? normed(xv, K, 1e-6, wv) : rows, M, K, 256);
    }
}

TEST_CASE("ROT-1: rows that do not begin at a multiple of 16 bytes run singly, with the same results") {
    kernel_library                           library;
    const ggml_ext_quantize_i8_convrot_attrs attrs{256};
    const int64_t                            M = 5, K = 512;
    using view2 = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, size_t, size_t);
    for (const int64_t first : {1, 4}) { // float of the owner
        for (const std::string kind : {"scale", "swiglu"}) {
            CAPTURE(first);
            CAPTURE(kind);
            model         m;
            const int64_t width = kind == "swiglu" ? 2 * K : K;
            ggml_tensor * owner = m.input(F32, {width * M + first});
            ggml_tensor * x     = resolve<view2>("ggml_view_2d")(m.ctx, owner, width, M, static_cast<size_t>(width) * 4, static_cast<size_t>(first) * 4);
            ggml_tensor * t     = kind == "scale" ? m.g.ggml_scale(m.ctx, x, 0.75f) : ops().ggml_swiglu(m.ctx, x);
            ggml_tensor * y     = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {t}, &attrs, sizeof(attrs));
            m.expand(y);
            m.allocate();
            CHECK(m.kernels() == (first % 4 != 0 ? "cuda.quantize_i8_convrot" : kind == "scale" ? "cuda.scale_convrot"
                                                                                                : "cuda.swiglu_convrot"));
            const auto xv = random_floats(static_cast<size_t>(width * M + first), 8);
            m.put(owner, xv);
            m.compute();
            std::vector<double> rows(static_cast<size_t>(K * M));
            for (size_t i = 0; i < rows.size(); ++i) {
                const size_t at = i / static_cast<size_t>(K) * static_cast<size_t>(width) + static_cast<size_t>(first) + i % static_cast<size_t>(K);
                const double a  = xv[at];
                rows[i]         = kind == "scale" ? 0.75 * a : a / (1 + std::exp(-a)) * xv[at + static_cast<size_t>(K)];
            }
            check_packed(m.take<int8_t>(y), rows, M, K, 256);
        }
    }
}
