// I8-1, I8-3: sd.linear_i8.v1 on the GPU: exact integer sums, then float operations in order.

#include "fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

struct problem {
    int64_t M, N, K;
    bool    w_scale = true, x_scale = true, bias = true;
};

ggml_tensor * linear_node(model & m, std::vector<ggml_tensor *> src, int32_t sources, int64_t packed_rows = 0) {
    const ggml_ext_linear_i8_attrs attrs{sources, static_cast<int32_t>(packed_rows)};
    return m.node(GGML_EXT_OP_LINEAR_I8, std::move(src), &attrs, sizeof(attrs));
}

// as it is written, each operation rounded on its own
float scaled(int64_t sum, float x_scale, float w_scale, float bias, const problem & p) {
    volatile float y = static_cast<float>(sum);
    if (p.x_scale) {
        y = y * x_scale;
    }
    if (p.w_scale) {
        y = y * w_scale;
    }
    if (p.bias) {
        y = y + bias;
    }
    return y;
}

// rows of x with their scales against all rows of w
int differing(const std::vector<float> & y, const std::vector<int8_t> & x, const std::vector<float> & x_scale, const std::vector<int8_t> & w,
              const std::vector<float> & w_scale, const std::vector<float> & bias, const problem & p) {
    int bad = 0;
    for (int64_t i = 0; i < p.M; ++i) {
        for (int64_t n = 0; n < p.N; ++n) {
            int32_t sum = 0;
            for (int64_t k = 0; k < p.K; ++k) {
                sum += x[static_cast<size_t>(i * p.K + k)] * w[static_cast<size_t>(n * p.K + k)];
            }
            bad += y[static_cast<size_t>(i * p.N + n)] != scaled(sum, x_scale[static_cast<size_t>(i)], w_scale[static_cast<size_t>(n)], bias[static_cast<size_t>(n)], p);
        }
    }
    return bad;
}

} // namespace

TEST_CASE("I8-1, I8-3: I8 activations, to the bit, M = 1 to 260") {
    kernel_library library;
    for (const problem & p : {problem{1, 64, 3840}, problem{2, 32, 10240}, problem{3, 16, 28672}, problem{7, 4, 4}, problem{16, 128, 256}, problem{17, 132, 1028},
                              problem{129, 64, 3840}, problem{260, 48, 512}, problem{5, 8, 64, false, true, false}, problem{5, 8, 64, true, false, true}}) {
        CAPTURE(p.M);
        CAPTURE(p.N);
        CAPTURE(p.K);
        model                      m;
        ggml_tensor *              w   = m.weight(I8, {p.K, p.N});
        ggml_tensor *              x   = m.input(I8, {p.K, p.M});
        std::vector<ggml_tensor *> src = {w, x};
        ggml_tensor *              ws = nullptr, *xs = nullptr, *b = nullptr;
        if (p.w_scale) {
            src.push_back(ws = m.weight(F32, {p.N}));
        }
        if (p.x_scale) {
            src.push_back(xs = m.input(F32, {p.M}));
        }
        if (p.bias) {
            src.push_back(b = m.weight(F32, {p.N}));
        }
        ggml_tensor * y = linear_node(m, src, (p.w_scale ? GGML_EXT_LINEAR_I8_W_SCALE : 0) | (p.x_scale ? GGML_EXT_LINEAR_I8_X_SCALE : 0) | (p.bias ? GGML_EXT_LINEAR_I8_BIAS : 0));
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == "cuda.linear_i8");
        const auto wv = random_bytes(static_cast<size_t>(p.K * p.N), 1), xv = random_bytes(static_cast<size_t>(p.K * p.M), 2);
        const auto wsv = random_floats(static_cast<size_t>(p.N), 3), xsv = random_floats(static_cast<size_t>(p.M), 4), bv = random_floats(static_cast<size_t>(p.N), 5);
        m.put(w, wv);
        m.put(x, xv);
        if (ws != nullptr) {
            m.put(ws, wsv);
        }
        if (xs != nullptr) {
            m.put(xs, xsv);
        }
        if (b != nullptr) {
            m.put(b, bv);
        }
        for (int i = 0; i < 3; ++i) { // warm-up, recording, replay
            m.compute();
            CHECK(differing(m.take<float>(y), xv, xsv, wv, wsv, bv, p) == 0);
        }
        CHECK(m.stats().n_recorded == 1);
    }
}

TEST_CASE("I8-1: F32 activations, and a packed tensor of this GPU's ConvRot, give what their int8 rows and scales say") {
    kernel_library                           library;
    const problem                            p{37, 64, 768, true, true, false};
    const ggml_ext_quantize_i8_convrot_attrs plain{1}, rotated{256};
    model                                    m;
    ggml_tensor *                            w  = m.weight(I8, {p.K, p.N});
    ggml_tensor *                            ws = m.weight(F32, {p.N});
    ggml_tensor *                            x  = m.input(F32, {p.K, p.M});
    ggml_tensor *                            q  = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {x}, &plain, sizeof(plain));
    ggml_tensor *                            r  = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, {x}, &rotated, sizeof(rotated));
    ggml_tensor *                            y  = linear_node(m, {w, x, ws}, GGML_EXT_LINEAR_I8_W_SCALE);
    ggml_tensor *                            yr = linear_node(m, {w, r, ws}, GGML_EXT_LINEAR_I8_W_SCALE, p.M);
    REQUIRE_MESSAGE((y != nullptr && yr != nullptr), ggml_ext_last_error());
    for (ggml_tensor * t : {q, r, y, yr}) {
        m.expand(t);
    }
    m.allocate();
    const auto xv  = random_floats(static_cast<size_t>(p.K * p.M), 6);
    const auto wv  = random_bytes(static_cast<size_t>(p.K * p.N), 7);
    const auto wsv = random_floats(static_cast<size_t>(p.N), 8);
    m.put(x, xv);
    m.put(w, wv);
    m.put(ws, wsv);
    m.compute();
    for (const auto & [packed, product] : {std::pair{q, y}, std::pair{r, yr}}) {
        const auto         bytes = m.take<int8_t>(packed);
        std::vector<float> scales(static_cast<size_t>(p.M));
        std::memcpy(scales.data(), bytes.data() + bytes.size() - scales.size() * 4, scales.size() * 4);
        CHECK(differing(m.take<float>(product), bytes, scales, wv, wsv, wsv, p) == 0);
    }
}

TEST_CASE("I8-3: N that is no multiple of four is refused with the reason, and the scheduler asks the CPU") {
    kernel_library library;
    model          m;
    ggml_tensor *  y = linear_node(m, {m.weight(I8, {64, 6}), m.input(I8, {64, 3})}, 0);
    REQUIRE(y != nullptr);
    CHECK_FALSE(m.g.base.ggml_backend_dev_supports_op(attached_gpu(), y));
    ggml_tensor * k = linear_node(m, {m.weight(I8, {66, 8}), m.input(I8, {66, 3})}, 0);
    CHECK_FALSE(m.g.base.ggml_backend_dev_supports_op(attached_gpu(), k));
    ggml_tensor * good = linear_node(m, {m.weight(I8, {64, 8}), m.input(I8, {64, 3})}, 0);
    CHECK(m.g.base.ggml_backend_dev_supports_op(attached_gpu(), good));
}

TEST_CASE("I8-3: an X that begins between multiples of four bytes is refused with the reason; one that begins at one is computed") {
    kernel_library library;
    using view2 = ggml_tensor * (*) (ggml_context *, ggml_tensor *, int64_t, int64_t, size_t, size_t);
    for (const size_t offset : {2, 4}) {
        CAPTURE(offset);
        const problem p{3, 8, 64, false, false, false};
        model         m(offset == 4);
        ggml_tensor * w     = m.weight(I8, {p.K, p.N});
        ggml_tensor * owner = m.input(I8, {p.K + 8, p.M});
        ggml_tensor * x     = resolve<view2>("ggml_view_2d")(m.ctx, owner, p.K, p.M, owner->nb[1], offset);
        ggml_tensor * y     = linear_node(m, {w, x}, 0);
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        CHECK(m.g.base.ggml_backend_dev_supports_op(attached_gpu(), y) == (offset == 4));
        if (offset == 2) {
            continue;
        }
        m.expand(y);
        m.allocate();
        CHECK(m.kernels() == "cuda.linear_i8");
        const auto wv = random_bytes(static_cast<size_t>(p.K * p.N), 1), all = random_bytes(static_cast<size_t>((p.K + 8) * p.M), 2);
        m.put(w, wv);
        m.put(owner, all);
        m.compute();
        std::vector<int8_t> xv;
        for (int64_t i = 0; i < p.M; ++i) {
            const auto row = all.begin() + i * (p.K + 8) + static_cast<ptrdiff_t>(offset);
            xv.insert(xv.end(), row, row + p.K);
        }
        const std::vector<float> none(static_cast<size_t>(std::max(p.M, p.N)));
        CHECK(differing(m.take<float>(y), xv, none, wv, none, none, p) == 0);
    }
}
