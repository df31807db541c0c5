#include "kernels_ggml/int8.h"

#include <optional>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int F32 = 0, I8 = 24, I32 = 26;

using opt = std::optional<std::vector<int64_t>>; // shape of an optional source

// Element (row, column) of the rotation of `group` features, from its definition
double rotation(int64_t group, int64_t row, int64_t column) {
    static const double H4[4][4] = {{1, 1, 1, -1}, {1, 1, -1, 1}, {1, -1, 1, 1}, {-1, 1, 1, 1}};
    double              v        = 1;
    for (; group > 1; group /= 4, row /= 4, column /= 4) {
        v *= H4[row % 4][column % 4] / 2;
    }
    return v;
}

size_t size_of(const std::vector<int64_t> & ne) {
    int64_t n = 1;
    for (const int64_t d : ne) {
        n *= d;
    }
    return static_cast<size_t>(n);
}

} // namespace

TEST_CASE("I8-1: I8 activations: the integer sum, X_scale, W_scale, bias, in this order, to the bit") {
    kernel_library library;
    struct problem {
        int64_t              K, N;
        std::vector<int64_t> x;
        opt                  w_scale, x_scale, bias;
    };
    const std::vector<problem> problems = {{16, 17, {16, 16}, {{17}}, {{16}}, {{17}}},
                                           {16, 17, {16, 16}, {{1, 17}}, {{1, 16}}, {}},
                                           {385, 24, {385, 9}, {{1}}, {{1}}, {{24}}},
                                           {7, 5, {7, 1}, {}, {}, {}},
                                           {130, 131, {130, 33}, {{131}}, {}, {{131}}},
                                           {3840, 12, {3840, 4}, {}, {{4}}, {{12}}},
                                           {64, 48, {64, 3, 5, 2}, {{48}}, {{30}}, {{48}}},
                                           {40, 24, {40, 450}, {{24}}, {{450}}, {{24}}},
                                           {8, 51866, {8, 5}, {{51866}}, {{5}}, {}}};
    for (const problem & p : problems) {
        for (const int n_threads : {1, 3}) {
            CAPTURE(p.K);
            CAPTURE(p.N);
            CAPTURE(n_threads);
            model                      b(n_threads);
            ggml_tensor *              w       = b.weight(I8, {p.K, p.N});
            ggml_tensor *              x       = b.typed_input(I8, p.x);
            std::vector<ggml_tensor *> src     = {w, x};
            int32_t                    sources = 0;
            const auto                 add     = [&](const opt & shape, int32_t bit) {
                if (shape) {
                    src.push_back(b.weight(F32, *shape));
                    sources |= bit;
                }
            };
            add(p.w_scale, GGML_EXT_LINEAR_I8_W_SCALE);
            add(p.x_scale, GGML_EXT_LINEAR_I8_X_SCALE);
            add(p.bias, GGML_EXT_LINEAR_I8_BIAS);
            ggml_tensor * y = linear(b, src, sources);
            REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
            b.expand(y);
            b.allocate();
            const auto wv = random_bytes(size_of({p.K, p.N}), 1), xv = random_bytes(size_of(p.x), 2);
            b.put(w, wv);
            b.put(x, xv);
            std::vector<std::vector<float>> extra;
            for (size_t i = 2; i < src.size(); ++i) {
                extra.push_back(random_floats(b.g.base.ggml_nbytes(src[i]) / 4, static_cast<uint32_t>(i)));
                b.put(src[i], extra.back());
            }
            REQUIRE(b.compute() == 0);
            CHECK(b.kernels() == "cpu.linear_i8");
            const auto    yv = b.get(y);
            const int64_t M  = static_cast<int64_t>(xv.size()) / p.K;
            for (int64_t m = 0; m < M; ++m) {
                for (int64_t n = 0; n < p.N; ++n) {
                    size_t     next = 0;
                    const auto at   = [&](const opt & shape, int64_t i) -> const float * {
                        if (!shape) {
                            return nullptr;
                        }
                        const auto & v = extra[next++];
                        return &v[v.size() == 1 ? 0 : static_cast<size_t>(i)];
                    };
                    const float * ws = at(p.w_scale, n);
                    const float * xs = at(p.x_scale, m);
                    const float * bs = at(p.bias, n);
                    REQUIRE(yv[static_cast<size_t>(m * p.N + n)] == scaled(dot(&xv[static_cast<size_t>(m * p.K)], &wv[static_cast<size_t>(n * p.K)], p.K), xs, ws, bs));
                }
            }
        }
    }
}

TEST_CASE("I8-1: a strided view of fused activations, and a computed weight, which is packed at each run") {
    kernel_library library;
    const int64_t  K = 32, N = 24, M = 9;
    model          b;
    ggml_tensor *  wf    = b.typed_input(I8, {K, 2 * N});
    ggml_tensor *  w     = b.g.ggml_view_2d(b.ctx, wf, K, N, wf->nb[1], static_cast<size_t>(N) * wf->nb[1]);
    ggml_tensor *  fused = b.typed_input(I8, {3 * K, M});
    ggml_tensor *  x     = b.g.ggml_view_2d(b.ctx, fused, K, M, fused->nb[1], static_cast<size_t>(K));
    ggml_tensor *  y     = linear(b, {w, x}, 0);
    REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
    b.expand(y);
    b.allocate();
    for (uint32_t round = 0; round < 3; ++round) {
        const auto wv = random_bytes(static_cast<size_t>(2 * K * N), 10 + round), xv = random_bytes(static_cast<size_t>(3 * K * M), 20 + round);
        b.put(wf, wv);
        b.put(fused, xv);
        REQUIRE(b.compute() == 0);
        const auto yv = b.get(y);
        for (int64_t i = 0; i < M * N; ++i) {
            REQUIRE(yv[static_cast<size_t>(i)] == static_cast<float>(dot(&xv[static_cast<size_t>(i / N * 3 * K + K)], &wv[static_cast<size_t>((N + i % N) * K)], K)));
        }
    }
}

TEST_CASE("I8-1: F32 activations are quantised by row: zero rows, outliers, infinities and NaN have defined results") {
    kernel_library library;
    const int64_t  K = 100, N = 20, M = 8;
    model          b;
    ggml_tensor *  w  = b.weight(I8, {K, N});
    ggml_tensor *  x  = b.typed_input(F32, {K, M});
    ggml_tensor *  ws = b.weight(F32, {N});
    ggml_tensor *  y  = linear(b, {w, x, ws}, GGML_EXT_LINEAR_I8_W_SCALE);
    REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
    b.expand(y);
    b.allocate();
    const auto wv = random_bytes(static_cast<size_t>(K * N), 3);
    auto       xv = random_floats(static_cast<size_t>(K * M), 4);
    const auto sv = random_floats(static_cast<size_t>(N), 5);
    std::fill(xv.begin() + K, xv.begin() + 2 * K, 0.0f);
    xv[static_cast<size_t>(2 * K + 5)] = 1e6f;
    xv[static_cast<size_t>(3 * K)]     = INFINITY;
    xv[static_cast<size_t>(4 * K + 7)] = NAN;
    b.put(w, wv);
    b.put(x, xv);
    b.put(ws, sv);
    REQUIRE(b.compute() == 0);
    const auto yv = b.get(y);
    for (int64_t m = 0; m < M; ++m) {
        double most = 0;
        for (int64_t k = 0; k < K; ++k) {
            most = std::fmax(most, std::fabs(xv[static_cast<size_t>(m * K + k)]));
        }
        for (int64_t n = 0; n < N; ++n) {
            CAPTURE(m);
            const float got = yv[static_cast<size_t>(m * N + n)];
            if (m == 3 || m == 4) {
                REQUIRE(std::isnan(got));
                continue;
            }
            double exact = 0, magnitude = 0;
            for (int64_t k = 0; k < K; ++k) {
                exact += static_cast<double>(xv[static_cast<size_t>(m * K + k)]) * wv[static_cast<size_t>(n * K + k)];
                magnitude += std::fabs(wv[static_cast<size_t>(n * K + k)]);
            }
            const double s = sv[static_cast<size_t>(n)];
            REQUIRE(std::fabs(got - exact * s) <= (0.501 * most / 127 * magnitude + 1e-6 * std::fabs(exact)) * std::fabs(s) + 1e-30);
        }
    }
}

TEST_CASE("I8-2: the packed tensor: rotated rows, padded to a multiple of four with zeros, then the scales") {
    kernel_library library;
    for (const int32_t group : {1, 4, 16, 64, 256}) {
        for (const int64_t M : {1, 4, 6}) {
            CAPTURE(group);
            CAPTURE(M);
            model         b;
            const int64_t K = 512;
            ggml_tensor * x = b.typed_input(F32, {K, M});
            ggml_tensor * q = quantize(b, x, group);
            REQUIRE_MESSAGE(q != nullptr, ggml_ext_last_error());
            const int64_t padded = (M + 3) / 4 * 4;
            REQUIRE(q->ne[0] == padded * K + 4 * M);
            b.expand(q);
            b.allocate();
            const auto xv = random_floats(static_cast<size_t>(K * M), 6, 3.0f);
            b.put(x, xv);
            REQUIRE(b.compute() == 0);
            CHECK(b.kernels() == "cpu.quantize_i8_convrot");
            const auto bytes = b.take<int8_t>(q);
            for (int64_t m = 0; m < M; ++m) {
                std::vector<double> y(static_cast<size_t>(K));
                double              most = 0;
                for (int64_t k = 0; k < K; ++k) {
                    for (int64_t j = 0; j < group; ++j) {
                        y[static_cast<size_t>(k)] += rotation(group, k % group, j) * xv[static_cast<size_t>(m * K + k / group * group + j)];
                    }
                    most = std::fmax(most, std::fabs(y[static_cast<size_t>(k)]));
                }
                float scale;
                std::memcpy(&scale, &bytes[static_cast<size_t>(padded * K + 4 * m)], sizeof(scale));
                REQUIRE(scale == doctest::Approx(most / 127).epsilon(1e-5));
                for (int64_t k = 0; k < K; ++k) {
                    REQUIRE(std::fabs(bytes[static_cast<size_t>(m * K + k)] - y[static_cast<size_t>(k)] / scale) <= 0.501);
                }
            }
            for (int64_t i = M * K; i < padded * K; ++i) {
                REQUIRE(bytes[static_cast<size_t>(i)] == 0);
            }
        }
    }
}

TEST_CASE("I8-1: a packed ConvRot tensor goes straight into the product, in one graph, and both steps run on the configured threads") {
    kernel_library library;
    for (const int n_threads : {1, 2}) {
        model         b(n_threads);
        const int64_t K = 256, N = 40, M = 7;
        ggml_tensor * w    = b.weight(I8, {K, N});
        ggml_tensor * bias = b.weight(F32, {N});
        ggml_tensor * x    = b.typed_input(F32, {K, M});
        ggml_tensor * q    = quantize(b, x, 64);
        ggml_tensor * y    = linear(b, {w, q, bias}, GGML_EXT_LINEAR_I8_BIAS, static_cast<int32_t>(M));
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        b.expand(q);
        b.expand(y);
        b.allocate();
        const auto wv = random_bytes(static_cast<size_t>(K * N), 7);
        const auto bv = random_floats(static_cast<size_t>(N), 8);
        b.put(w, wv);
        b.put(bias, bv);
        b.put(x, random_floats(static_cast<size_t>(K * M), 9));
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "cpu.quantize_i8_convrot,cpu.linear_i8");
        const auto packed = b.take<int8_t>(q);
        const auto yv     = b.get(y);
        for (int64_t i = 0; i < M * N; ++i) {
            float scale;
            std::memcpy(&scale, &packed[static_cast<size_t>(8 * K + 4 * (i / N))], sizeof(scale));
            REQUIRE(yv[static_cast<size_t>(i)] == scaled(dot(&packed[static_cast<size_t>(i / N * K)], &wv[static_cast<size_t>(i % N * K)], K), &scale, nullptr, &bv[static_cast<size_t>(i % N)]));
        }
    }
}

TEST_CASE("I8-1: malformed sources are refused with the reason, and nothing is made") {
    kernel_library library;
    model          b;
    const int64_t  K = 32, N = 24, M = 6;
    ggml_tensor *  w   = b.weight(I8, {K, N});
    ggml_tensor *  x   = b.weight(I8, {K, M});
    ggml_tensor *  xf  = b.weight(F32, {K, M});
    const auto     vec = [&](int type, std::vector<int64_t> ne) { return b.weight(type, std::move(ne)); };
    const struct {
        const char *               reason;
        std::vector<ggml_tensor *> src;
        int32_t                    sources;
        int32_t                    packed_rows = 0;
    } cases[] = {
        {"W_scale is [23", {w, x, vec(F32, {N - 1})}, 1},
        {"W_scale is [24, 2", {w, x, vec(F32, {N, 2})}, 1},
        {"W_scale has type I32, expected F32", {w, x, vec(I32, {N})}, 1},
        {"X_scale is [7", {w, x, vec(F32, {M + 1})}, 2},
        {"X_scale has type I8, expected F32", {w, x, vec(I8, {M})}, 2},
        {"bias is [1", {w, x, vec(F32, {1})}, 4},
        {"X is F32 and gets its own", {w, xf, vec(F32, {M})}, 2},
        {"X has 31 features", {w, vec(I8, {K - 1, M})}, 0},
        {"X has type I32, expected I8 or F32", {w, vec(I32, {K, M})}, 0},
        {"W has type F32 and shape", {vec(F32, {K, N}), x}, 0},
        {"W has type I8 and shape", {vec(I8, {K, N, 2}), x}, 0},
        {"131071", {vec(I8, {131072, 1}), vec(I8, {131072, 1})}, 0},
        {"2 sources, expected 3", {w, x}, 1},
        {"sources is 8", {w, x, x}, 8},
        {"the packed X is [100", {w, vec(I8, {100})}, 0, 6},
        {"packed and brings its own", {w, vec(I8, {8 * K + 24}), vec(F32, {M})}, 2, 6},
        {"X has type 30", {w, vec(30, {K, M})}, 0}, // BF16, which the kernels do not know
        {"a row of X are 6 bytes apart, expected successive ones (1 bytes)", {w, b.g.ggml_transpose(b.ctx, vec(I8, {M, K}))}, 0},
        {"a row of W are 24 bytes apart", {b.g.ggml_transpose(b.ctx, vec(I8, {N, K})), x}, 0},
        {"the rows of X are not evenly spaced (strides of 64, 32 and", {w, b.g.ggml_permute(b.ctx, vec(I8, {K, 2, M}), 0, 2, 1, 3)}, 0},
    };
    for (const auto & c : cases) {
        CAPTURE(c.reason);
        CHECK(linear(b, c.src, c.sources, c.packed_rows) == nullptr);
        CHECK_MESSAGE(std::string(ggml_ext_last_error()).find(c.reason) != std::string::npos, ggml_ext_last_error());
    }
    CHECK(quantize(b, xf, 2) == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("group is 2") != std::string::npos);
    CHECK(quantize(b, xf, 64) == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("multiple of the group") != std::string::npos);
    CHECK(quantize(b, x, 4) == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("X has type I8, expected F32") != std::string::npos);
    CHECK(quantize(b, b.g.ggml_transpose(b.ctx, xf), 1) == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("a row of X are 128 bytes apart") != std::string::npos);
}

TEST_CASE("QUAL-1: outputs over their inputs go through workspace") {
    kernel_library library;
    for (const bool quantizer : {false, true}) {
        CAPTURE(quantizer);
        model         b(2, true);
        const int64_t K = 64, N = 64, M = 6;
        ggml_tensor * w = b.g.ggml_new_tensor_2d(b.ctx, I8, K, N);
        ggml_tensor * x = b.g.ggml_new_tensor_2d(b.ctx, quantizer ? F32 : I8, K, M);
        ggml_tensor * s = b.g.ggml_new_tensor_1d(b.ctx, F32, M);
        ggml_tensor * y = quantizer ? quantize(b, x, 16) : linear(b, {w, x, s}, GGML_EXT_LINEAR_I8_X_SCALE);
        REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
        b.expand(y);
        // x inside y, then s inside y as well; w apart
        alignas(64) static char memory[1 << 16];
        ggml_backend_buffer *   buffer = b.g.base.ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory));
        REQUIRE(b.g.base.ggml_backend_tensor_alloc(buffer, y, memory) == 0);
        REQUIRE(b.g.base.ggml_backend_tensor_alloc(buffer, x, quantizer ? memory : memory + 128) == 0);
        REQUIRE(b.g.base.ggml_backend_tensor_alloc(buffer, s, memory + 768) == 0);
        REQUIRE(b.g.base.ggml_backend_tensor_alloc(buffer, w, memory + 32768) == 0);
        const auto wv = random_bytes(static_cast<size_t>(K * N), 1), xv = random_bytes(static_cast<size_t>(K * M), 2);
        const auto sv = random_floats(static_cast<size_t>(M), 3), xf = random_floats(static_cast<size_t>(K * M), 4);
        b.put(w, wv);
        if (quantizer) {
            b.put(x, xf);
        } else {
            b.put(x, xv);
            b.put(s, sv);
        }
        REQUIRE(b.compute() == 0);
        if (quantizer) {
            const auto bytes = b.take<int8_t>(y);
            for (int64_t m = 0; m < M; ++m) {
                float scale;
                std::memcpy(&scale, &bytes[static_cast<size_t>(8 * K + 4 * m)], sizeof(scale));
                for (int64_t k = 0; k < K; ++k) {
                    double v = 0;
                    for (int64_t j = 0; j < 16; ++j) {
                        v += rotation(16, k % 16, j) * xf[static_cast<size_t>(m * K + k / 16 * 16 + j)];
                    }
                    REQUIRE(std::fabs(bytes[static_cast<size_t>(m * K + k)] - v / scale) <= 0.501);
                }
            }
        } else {
            const auto yv = b.get(y);
            for (int64_t i = 0; i < M * N; ++i) {
                REQUIRE(yv[static_cast<size_t>(i)] == scaled(dot(&xv[static_cast<size_t>(i / N * K)], &wv[static_cast<size_t>(i % N * K)], K), &sv[static_cast<size_t>(i / N)], nullptr, nullptr));
            }
        }
        b.g.base.ggml_backend_buffer_free(buffer);
    }
}

TEST_CASE("QUAL-1: an abort asked for between the phases ends the computation; the next one is right") {
    kernel_library library;
    model          b(2);
    const int64_t  K = 64, N = 32, M = 8;
    ggml_tensor *  w = b.weight(I8, {K, N});
    ggml_tensor *  x = b.typed_input(F32, {K, M});
    ggml_tensor *  y = linear(b, {w, x}, 0);
    REQUIRE_MESSAGE(y != nullptr, ggml_ext_last_error());
    b.expand(y);
    b.allocate();
    const auto set_abort = reinterpret_cast<void (*)(ggml_backend *, bool (*)(void *), void *)>(
        b.g.base.ggml_backend_reg_get_proc_address(b.g.base.ggml_backend_dev_backend_reg(b.g.cpu), "ggml_backend_set_abort_callback"));
    REQUIRE((set_abort != nullptr));
    b.put(w, random_bytes(static_cast<size_t>(K * N), 1));
    b.put(x, std::vector<float>(static_cast<size_t>(K * M), 0.0f));
    int calls = 0;
    set_abort(b.backend, [](void * n) { return ++*static_cast<int *>(n) > 0; }, &calls);
    CHECK(b.compute() == 1); // GGML_STATUS_ABORTED
    CHECK(calls == 1);
    set_abort(b.backend, nullptr, nullptr);
    b.put(x, std::vector<float>(static_cast<size_t>(K * M), 0.0f));
    REQUIRE(b.compute() == 0);
    for (const float v : b.get(y)) {
        CHECK(v == 0.0f);
    }
}
