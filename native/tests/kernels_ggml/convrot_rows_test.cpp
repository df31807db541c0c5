#include "ggml-ext-cpu-ops.h"
#include "kernels_ggml/fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int     F32 = 0;
constexpr int64_t K = 1024, M = 515; // just over 2 MiB, rows no multiple of four
constexpr int     GROUP = 64;

ggml_tensor * quantize(model & b, ggml_tensor * x) {
    const ggml_ext_quantize_i8_convrot_attrs attrs{GROUP};
    ggml_tensor *                            out = nullptr;
    REQUIRE_OK(ggml_ext_op_create(b.ctx, GGML_EXT_OP_QUANTIZE_I8_CONVROT, 1, &x, &attrs, sizeof(attrs), &out));
    return out;
}

using unary = ggml_tensor * (*) (ggml_context *, ggml_tensor *);

// The rotation of a group, from its definition: element (i, j) of the Kronecker power.
double rotation(int64_t i, int64_t j) {
    static const double H4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
    double              v        = 1;
    for (int64_t size = GROUP; size > 1; size /= 4, i /= 4, j /= 4) {
        v *= H4[i % 4][j % 4] / 2;
    }
    return v;
}

// The packed tensor against rows in double precision: scales, values to half a step, padding.
void check_packed(const std::vector<int8_t> & packed, const std::vector<double> & rows, int64_t n_rows) {
    const int64_t padded = (n_rows + 3) / 4 * 4;
    REQUIRE(packed.size() == static_cast<size_t>(padded * K + 4 * n_rows));
    int64_t bad = 0;
    for (int64_t m = 0; m < n_rows; ++m) {
        std::vector<double> rotated(static_cast<size_t>(K));
        double              largest = 0;
        for (int64_t i = 0; i < K; ++i) {
            const int64_t begin = i / GROUP * GROUP;
            for (int64_t j = 0; j < GROUP; ++j) {
                rotated[static_cast<size_t>(i)] += rotation(i - begin, j) * rows[static_cast<size_t>(m * K + begin + j)];
            }
            largest = std::fmax(largest, std::fabs(rotated[static_cast<size_t>(i)]));
        }
        float scale;
        std::memcpy(&scale, packed.data() + padded * K + 4 * m, sizeof(scale));
        bad += !(std::fabs(scale - largest / 127) <= 1e-5 * largest / 127);
        for (int64_t i = 0; i < K; ++i) {
            const double q = packed[static_cast<size_t>(m * K + i)];
            bad += !(std::fabs(q - rotated[static_cast<size_t>(i)] * 127 / largest) <= 0.502);
        }
    }
    for (int64_t i = n_rows * K; i < padded * K; ++i) {
        bad += packed[static_cast<size_t>(i)] != 0;
    }
    CHECK(bad == 0);
}

// Rows of a norm in double precision.
std::vector<double> normed(const std::vector<float> & x, bool rms, double eps) {
    std::vector<double> y(x.size());
    for (size_t row = 0; row < x.size(); row += static_cast<size_t>(K)) {
        double mean = 0, squares = 0;
        for (size_t i = row; !rms && i < row + K; ++i) {
            mean += x[i] / static_cast<double>(K);
        }
        for (size_t i = row; i < row + K; ++i) {
            squares += (x[i] - mean) * (x[i] - mean) / static_cast<double>(K);
        }
        for (size_t i = row; i < row + K; ++i) {
            y[i] = (x[i] - mean) / std::sqrt(squares + eps);
        }
    }
    return y;
}

struct rows_case {
    model               b;
    ggml_tensor *       x;
    std::vector<float>  xv;
    std::vector<double> expected;

    explicit rows_case(std::vector<int64_t> ne = {K, M}, int threads = 2) : b(threads), x(b.typed_input(F32, ne)) {
        xv = random_floats(b.g.base.ggml_nbytes(x) / sizeof(float), 7, 3.0f);
    }
    ggml_tensor * pack(ggml_tensor * rows) {
        ggml_tensor * packed = quantize(b, rows);
        b.expand(packed);
        // Inputs are kept alive by nodes of a split, of which there must be a few.
        b.expand(b.g.ggml_sqr(b.ctx, b.g.ggml_sqr(b.ctx, b.g.ggml_sqr(b.ctx, x))));
        b.allocate();
        b.put(x, xv);
        return packed;
    }
    void check(const ggml_tensor * packed, const char * rule) {
        REQUIRE(b.compute() == 0);
        CHECK_MESSAGE(b.kernels() == std::string(rule), b.refusals());
        check_packed(b.take<int8_t>(packed), expected, static_cast<int64_t>(expected.size()) / K);
    }
};

} // namespace

TEST_CASE("ROT-1: SCALE and GELU_ERF go into the quantiser") {
    kernel_library library;
    for (const bool gelu : {false, true}) {
        for (const int threads : {1, 3}) {
            rows_case     c({K, M}, threads);
            ggml_tensor * packed = c.pack(gelu ? resolve<unary>("ggml_gelu_erf")(c.b.ctx, c.x) : c.b.g.ggml_scale(c.b.ctx, c.x, -0.3f));
            for (const float x : c.xv) {
                c.expected.push_back(gelu ? 0.5 * x * std::erfc(-x / std::sqrt(2.0)) : -0.3f * static_cast<double>(x));
            }
            c.check(packed, gelu ? "cpu.unary_convrot" : "cpu.scale_convrot");
        }
    }
}

TEST_CASE("ROT-1: SILU -> MUL and SIGMOID -> MUL go into the quantiser, on either side of the product") {
    kernel_library library;
    for (const bool silu : {false, true}) {
        for (const bool left : {false, true}) {
            CAPTURE(silu);
            CAPTURE(left);
            // The second factor may be the same for all of dimension 2; the first has the output's shape.
            rows_case                  c({K, 103, 5});
            const std::vector<int64_t> shape  = {K, 103, left ? 5 : 1};
            ggml_tensor *              y      = c.b.weight(F32, shape);
            ggml_tensor *              gate   = silu ? resolve<unary>("ggml_silu")(c.b.ctx, c.x) : ops().ggml_sigmoid(c.b.ctx, c.x);
            ggml_tensor *              packed = c.pack(left ? c.b.g.ggml_mul(c.b.ctx, y, gate) : c.b.g.ggml_mul(c.b.ctx, gate, y));
            const auto                 yv     = random_floats(c.b.g.base.ggml_nbytes(y) / sizeof(float), 8);
            c.b.put(y, yv);
            for (size_t i = 0; i < c.xv.size(); ++i) {
                const double x = c.xv[i], s = 1 / (1 + std::exp(-x));
                c.expected.push_back((silu ? x * s : s) * yv[i % yv.size()]);
            }
            c.check(packed, "cpu.unary_convrot");
        }
    }
}

TEST_CASE("ROT-1: SWIGLU goes into the quantiser: packed, swapped, separate") {
    kernel_library library;
    using swapped_glu = ggml_tensor * (*) (ggml_context *, ggml_tensor *);
    for (const int form : {0, 1, 2}) {
        CAPTURE(form);
        rows_case                c(form == 2 ? std::vector<int64_t>{K, M} : std::vector<int64_t>{2 * K, M});
        ggml_tensor *            up     = form == 2 ? c.b.typed_input(F32, {K, M}) : nullptr;
        ggml_tensor *            y      = form == 0   ? ops().ggml_swiglu(c.b.ctx, c.x)
                                          : form == 1 ? resolve<swapped_glu>("ggml_swiglu_swapped")(c.b.ctx, c.x)
                                                      : ops().ggml_swiglu_split(c.b.ctx, c.x, up);
        ggml_tensor *            packed = c.pack(y);
        const std::vector<float> upv    = random_floats(static_cast<size_t>(K * M), 9);
        if (form == 2) {
            c.b.put(up, upv);
        }
        for (int64_t m = 0; m < M; ++m) {
            for (int64_t i = 0; i < K; ++i) {
                const auto   at  = static_cast<size_t>(form == 2 ? m * K + i : 2 * m * K + i);
                const double one = c.xv[at], two = form == 2 ? upv[at] : c.xv[at + K];
                const double gate = form == 1 ? two : one, other = form == 1 ? one : two;
                c.expected.push_back(gate / (1 + std::exp(-gate)) * other);
            }
        }
        c.check(packed, "cpu.swiglu_convrot");
    }
}

TEST_CASE("ROT-1: norms with weight, shift and modulation go into the quantiser") {
    kernel_library library;
    for (const bool rms : {false, true}) {
        for (const int form : {0, 1, 2}) { // weight; and shift; and modulation
            CAPTURE(rms);
            CAPTURE(form);
            rows_case     c({K, 103, 5});
            auto &        g    = c.b.g;
            ggml_tensor * w    = c.b.weight(F32, {K});
            ggml_tensor * mod  = c.b.typed_input(F32, {K, 1, 5}); // a row for each of dimension 2
            ggml_tensor * move = c.b.typed_input(F32, {K, 1, 5});
            ggml_tensor * y    = g.ggml_mul(c.b.ctx, rms ? g.ggml_rms_norm(c.b.ctx, c.x, 1e-6f) : g.ggml_norm(c.b.ctx, c.x, 1e-6f), w);
            if (form == 2) {
                y = g.base.ggml_add(c.b.ctx, y, g.ggml_mul(c.b.ctx, y, mod));
            }
            if (form >= 1) {
                y = g.base.ggml_add(c.b.ctx, y, move);
            }
            ggml_tensor * packed = c.pack(y);
            const auto    wv = random_floats(K, 1, 0.5f), mv = random_floats(5 * K, 2), sv = random_floats(5 * K, 3);
            c.b.put(w, wv);
            if (form >= 1) {
                c.b.put(move, sv);
            }
            if (form == 2) {
                c.b.put(mod, mv);
            }
            c.expected = normed(c.xv, rms, 1e-6f);
            for (size_t i = 0; i < c.expected.size(); ++i) {
                const size_t k = i % K, of = i / (103 * K) * K + k;
                double &     v = c.expected[i];
                v *= wv[k];
                v += form == 2 ? v * mv[of] : 0.0;
                v += form >= 1 ? sv[of] : 0.0;
            }
            c.check(packed, rms ? "cpu.rms_norm_convrot" : "cpu.norm_convrot");
        }
    }
}

TEST_CASE("ROT-1: rows that fit into the cache, that others read, or that are combined with themselves are left alone") {
    kernel_library library;
    {
        rows_case c({K, 16});
        c.pack(c.b.g.ggml_scale(c.b.ctx, c.x, 2.0f));
        for (const float x : c.xv) {
            c.expected.push_back(2.0 * x);
        }
        REQUIRE(c.b.compute() == 0);
        CHECK(c.b.kernels() == "cpu.quantize_i8_convrot");
        CHECK(c.b.refusals().find("the rows have 65536 bytes in F32, it pays from 2097152 on") != std::string::npos);
    }
    {
        rows_case     c;
        ggml_tensor * scaled = c.b.g.ggml_scale(c.b.ctx, c.x, 2.0f);
        c.b.expand(scaled);
        ggml_tensor * packed = c.pack(scaled);
        for (const float x : c.xv) {
            c.expected.push_back(2.0 * x);
        }
        c.check(packed, "cpu.quantize_i8_convrot");
    }
    {
        rows_case     c;
        ggml_tensor * s      = resolve<unary>("ggml_silu")(c.b.ctx, c.x);
        ggml_tensor * packed = c.pack(c.b.g.ggml_mul(c.b.ctx, s, s));
        for (const float x : c.xv) {
            const double silu = x / (1 + std::exp(-static_cast<double>(x)));
            c.expected.push_back(silu * silu);
        }
        c.check(packed, "cpu.quantize_i8_convrot");
        CHECK(c.b.refusals().find("the rows are combined with themselves") != std::string::npos);
    }
}
