// Stock ggml against the kernel library in one run and in turns; each figure is the time of the fastest of many short rounds: the
// processor time of one thread, or, with more threads, time on the clock.
//   GGML_EXT_TEST_GGML_DIR=<folder of stock ggml> kernels-ggml-bench [THREADS [GRAPHS]]     prints a Markdown table
// of the graphs whose names begin with GRAPHS.
// The stock side's backend is made before the device is attached, so that nothing of ggml-ext is in its way.

#include "../../tests/support.h"
#include "ggml-ext-cpu-ops.h"
#include "ggml-ext-kernels/common.h"
#include "ggml-ext.h"
#include "support/graph_ops.h"
#include "support/stock_ggml.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <time.h>
#include <vector>

using namespace ggml_ext;
using namespace ggml_ext::test;

extern "C" int ggml_ext_kernel_library_init(ggml_backend_device * device, ggml_ext_add_registration add, void * context);

namespace {

constexpr int F32 = 0, F16 = 1, Q8_0 = 8, I8 = 24, I32 = 26;

void require(bool condition, const char * what) {
    if (!condition) {
        std::fprintf(stderr, "kernels-ggml-bench: %s: %s\n", what, ggml_ext_last_error());
        std::exit(1);
    }
}

struct arguments {
    int         threads = 1;
    std::string graphs;
};

// Of the calling thread's processor time, or on the clock.
double seconds(int threads) {
    timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <typename F> F base_function(const char * name) {
    auto f = reinterpret_cast<F>(dlsym(dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD), name));
    require(f != nullptr, name);
    return f;
}

ggml_backend * new_backend(int threads) {
    const auto &   g       = stock();
    ggml_backend * backend = g.base.ggml_backend_dev_init(g.cpu, nullptr);
    auto *         reg     = g.base.ggml_backend_dev_backend_reg(g.cpu);
    reinterpret_cast<void (*)(ggml_backend *, int)>(g.base.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(backend, threads);
    return backend;
}

// Nodes in the first context over leaves in the second
using graph_maker = std::function<ggml_tensor *(ggml_context *, ggml_context *)>;

class side {
public:
    side(ggml_backend * backend, const graph_maker & make) : g_(stock()) {
        nodes_            = g_.base.ggml_init({1 << 20, nullptr, true});
        leaves_           = g_.base.ggml_init({1 << 20, nullptr, true});
        graph_            = g_.base.ggml_new_graph_custom(nodes_, 64, false);
        sched_            = g_.base.ggml_backend_sched_new(&backend, nullptr, 1, 256, false, true);
        ggml_tensor * out = make(nodes_, leaves_);
        g_.base.ggml_set_output(out);
        g_.base.ggml_build_forward_expand(graph_, out);
        buffer_       = g_.ggml_backend_alloc_ctx_tensors(leaves_, backend);
        auto * floats = static_cast<float *>(g_.base.ggml_backend_buffer_get_base(buffer_));
        for (size_t i = 0; i < g_.base.ggml_backend_buffer_get_size(buffer_) / sizeof(float); ++i) {
            floats[i] = static_cast<float>(i * 2654435761u % 1000) / 500.0f - 1.0f;
        }
        const auto next = base_function<ggml_tensor * (*) (ggml_context *, ggml_tensor *)>("ggml_get_next_tensor");
        for (auto * t = base_function<ggml_tensor * (*) (ggml_context *)>("ggml_get_first_tensor")(leaves_); t != nullptr; t = next(leaves_, t)) {
            for (int64_t i = 0; t->type == I32 && i < t->ne[0]; ++i) {
                static_cast<int32_t *>(t->data)[i] = static_cast<int32_t>(i); // positions
            }
            if (t->type == I8) {
                const auto rows = ::test::quantized_rows(static_cast<size_t>(t->ne[1]), static_cast<size_t>(t->ne[0]), 1);
                std::copy(rows.begin(), rows.end(), static_cast<int8_t *>(t->data));
            }
            if (t->type == Q8_0) {
                std::memset(t->data, 0x2C, g_.base.ggml_nbytes(t)); // ordinary scales as well as values
            }
        }
        require(g_.ggml_backend_sched_alloc_graph(sched_, graph_), "no memory for the graph");
    }
    ~side() {
        g_.base.ggml_backend_sched_free(sched_);
        g_.base.ggml_backend_buffer_free(buffer_);
        g_.base.ggml_free(nodes_);
        g_.base.ggml_free(leaves_);
    }
    side(const side &)             = delete;
    side & operator=(const side &) = delete;

    void compute() { require(g_.ggml_backend_sched_graph_compute(sched_, graph_) == 0, "compute failed"); }

private:
    const stock_ggml &    g_;
    ggml_context *        nodes_;
    ggml_context *        leaves_;
    ggml_cgraph *         graph_;
    ggml_backend_sched *  sched_;
    ggml_backend_buffer * buffer_;
};

struct backends {
    arguments     wanted;
    ggml_backend *stock, *ours;
};

// microseconds a computation, the two sides in turns
void compare(const backends & b, const std::string & what, double gflop, const graph_maker & make_stock, const graph_maker & make_ours) {
    if (what.compare(0, b.wanted.graphs.size(), b.wanted.graphs) != 0) {
        return;
    }
    side   sides[2] = {{b.stock, make_stock}, {b.ours, make_ours}};
    int    calls[2] = {1, 1};
    double best[2]  = {1e9, 1e9};
    for (int round = 0; round < 30; ++round) {
        for (int s = 0; s < 2; ++s) {
            const double start = seconds(b.wanted.threads);
            for (int i = 0; i < calls[s]; ++i) {
                sides[s].compute();
            }
            const double each = (seconds(b.wanted.threads) - start) / calls[s];
            if (round < 2) {
                calls[s] = std::max(1, static_cast<int>(0.003 / each));
            } else {
                best[s] = std::min(best[s], each);
            }
        }
    }
    std::printf("| %s | %.1f | %.1f | %.2f |", what.c_str(), 1e6 * best[0], 1e6 * best[1], best[0] / best[1]);
    if (gflop > 0) {
        std::printf(" %.0f | %.0f |\n", gflop / best[0], gflop / best[1]);
    } else {
        std::printf(" | |\n");
    }
    std::fflush(stdout);
}

void compare(const backends & b, const std::string & what, double gflop, const graph_maker & make) {
    compare(b, what, gflop, make, make);
}

ggml_tensor * create(ggml_context * nodes, const char * op, std::vector<ggml_tensor *> sources, const void * attrs, size_t size) {
    ggml_tensor * out = nullptr;
    require(ggml_ext_op_create(nodes, op, static_cast<int32_t>(sources.size()), sources.data(), attrs, size, &out) == 0, op);
    return out;
}

// A linear layer on F32 rows: ggml's MUL_MAT with Q8_0 weights, which quantises the rows in blocks of 32, against INT8 with a
// scale a row; with a group, after the rotation.
void compare_int8(const backends & b, int64_t K, int64_t N, int64_t M, int32_t group) {
    const auto & g = stock();
    compare(
        b, "Q8_0 MUL_MAT / INT8 G=" + std::to_string(group) + " " + std::to_string(K) + " x " + std::to_string(N) + ", " + std::to_string(M) + " rows",
        2e-9 * static_cast<double>(K * N * M),
        [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * w = g.ggml_new_tensor_2d(leaves, Q8_0, K, N);
            return g.base.ggml_mul_mat(nodes, w, g.ggml_new_tensor_2d(leaves, F32, K, M));
        },
        [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * w      = g.ggml_new_tensor_2d(leaves, I8, K, N);
            ggml_tensor * x      = g.ggml_new_tensor_2d(leaves, F32, K, M);
            ggml_tensor * scale  = g.ggml_new_tensor_1d(leaves, F32, N);
            const bool    packed = group > 1;
            if (packed) {
                const ggml_ext_quantize_i8_convrot_attrs attrs{group};
                x = create(nodes, GGML_EXT_OP_QUANTIZE_I8_CONVROT, {x}, &attrs, sizeof(attrs));
            }
            const ggml_ext_linear_i8_attrs attrs{GGML_EXT_LINEAR_I8_W_SCALE, packed ? static_cast<int32_t>(M) : 0};
            return create(nodes, GGML_EXT_OP_LINEAR_I8, {w, x, scale}, &attrs, sizeof(attrs));
        });
}

// FLASH_ATTN_EXT, heads inside a token's row; where `products` the stock side is MUL_MAT, SOFT_MAX, CONT, MUL_MAT, CONT instead.
void compare_attention(const backends & b, int64_t queries, int64_t keys, int64_t d, int type, bool products) {
    const auto &      g        = stock();
    constexpr int64_t heads    = 12;
    const float       scale    = 0.125f;
    const auto        flash    = base_function<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *, ggml_tensor *, float, float, float)>("ggml_flash_attn_ext");
    const auto        soft_max = base_function<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, float, float)>("ggml_soft_max_ext");
    const auto        input    = [&](ggml_context * leaves, int t, int64_t tokens) { return g.ggml_new_tensor_3d(leaves, t, d, heads, tokens); };
    const graph_maker fused    = [&](ggml_context * nodes, ggml_context * leaves) {
        ggml_tensor *q = input(leaves, F32, queries), *k = input(leaves, type, keys), *v = input(leaves, type, keys);
        const auto   heads_of = [&](ggml_tensor * t) { return g.ggml_permute(nodes, t, 0, 2, 1, 3); };
        return flash(nodes, heads_of(q), heads_of(k), heads_of(v), g.ggml_new_tensor_2d(leaves, F16, keys, queries), scale, 0, 0);
    };
    const graph_maker plain = [&](ggml_context * nodes, ggml_context * leaves) {
        ggml_tensor * q = input(leaves, F32, queries), *k = input(leaves, type, keys), *v = input(leaves, type, keys);
        ggml_tensor * s = g.base.ggml_mul_mat(nodes, g.ggml_permute(nodes, k, 0, 2, 1, 3), g.ggml_permute(nodes, q, 0, 2, 1, 3));
        s               = soft_max(nodes, s, g.ggml_new_tensor_2d(leaves, F32, keys, queries), scale, 0);
        ggml_tensor * y = g.base.ggml_mul_mat(nodes, g.ggml_cont(nodes, g.ggml_permute(nodes, v, 1, 2, 0, 3)), s);
        return g.ggml_cont(nodes, g.ggml_permute(nodes, y, 0, 2, 1, 3));
    };
    const std::string shape = std::to_string(queries) + " x " + std::to_string(keys) + ", 12 heads of " + std::to_string(d);
    compare(b, (products ? "MUL_MAT, SOFT_MAX, CONT, MUL_MAT, CONT / FLASH_ATTN_EXT " : "FLASH_ATTN_EXT ") + shape + (type == F16 ? ", F16" : ", F32"),
            4e-9 * static_cast<double>(queries * keys * d * heads), products ? plain : fused, fused);
}

} // namespace

int main(int argc, char ** argv) {
    arguments wanted;
    wanted.threads = argc > 1 ? std::atoi(argv[1]) : 1;
    wanted.graphs  = argc > 2 ? argv[2] : "";
    if (wanted.threads < 1) {
        std::fprintf(stderr, "kernels-ggml-bench: %s threads, expected 1 or more\n", argv[1]);
        return 1;
    }
    const auto & g = stock();
    backends     b{wanted, new_backend(wanted.threads), nullptr};
    const auto   params = g.load_params();
    require(ggml_ext_load(&params) == 0 && ggml_ext_attach_device(g.cpu) == 0, "attach");
    const auto keep = [](ggml_ext_registration *, void *) { return static_cast<int>(GGML_EXT_STATUS_SUCCESS); };
    require(ggml_ext_kernel_library_init(g.cpu, keep, nullptr) == 0, "library");
    b.ours = new_backend(wanted.threads);

    std::printf("kernels: %s, threads: %d\n\n| graph | stock us | ours us | ratio | stock GFLOP/s | ours |\n|---|---|---|---|---|---|\n", ggml_ext_cpu_isa(), wanted.threads);
    const auto    soft_max    = base_function<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, float, float)>("ggml_soft_max_ext");
    const auto    gelu        = base_function<ggml_tensor * (*) (ggml_context *, ggml_tensor *)>("ggml_gelu_erf");
    const int64_t shapes[][2] = {{384, 384}, {384, 1536}, {1536, 384}, {2048, 2048}};
    for (const auto & s : shapes) {
        for (const int64_t M : {2, 4, 8, 16, 32, 128, 512}) {
            const int64_t K = s[0], N = s[1];
            if (K == 2048 && M > 128) {
                continue;
            }
            const std::string what = "MUL_MAT " + std::to_string(K) + " x " + std::to_string(N) + ", " + std::to_string(M) + " rows";
            compare(b, what, 2e-9 * static_cast<double>(K * N * M), [&](ggml_context * nodes, ggml_context * leaves) {
                ggml_tensor * w = g.ggml_new_tensor_2d(leaves, F32, K, N);
                return g.base.ggml_mul_mat(nodes, w, g.ggml_new_tensor_2d(leaves, F32, K, M));
            });
        }
    }
    const int64_t int8_shapes[][2] = {{384, 384}, {384, 1536}, {1536, 384}, {4096, 4096}};
    for (const auto & s : int8_shapes) {
        for (const int64_t M : {1, 16, 128, 512}) {
            if (s[0] == 4096 && M > 128) {
                continue;
            }
            compare_int8(b, s[0], s[1], M, 1);
            compare_int8(b, s[0], s[1], M, s[0] % 256 == 0 ? 256 : 64);
        }
    }
    for (const int64_t M : {16, 128}) {
        const std::string rows = ", " + std::to_string(M) + " rows";
        compare(b, "MUL_MAT 384 x 1536, bias, GELU_ERF" + rows, 0, [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * w = g.ggml_new_tensor_2d(leaves, F32, 384, 1536);
            ggml_tensor * y = g.base.ggml_mul_mat(nodes, w, g.ggml_new_tensor_2d(leaves, F32, 384, M));
            return gelu(nodes, g.base.ggml_add(nodes, y, g.ggml_new_tensor_1d(leaves, F32, 1536)));
        });
        compare(b, "GELU_ERF 1536" + rows, 0, [&](ggml_context * nodes, ggml_context * leaves) {
            return gelu(nodes, g.ggml_new_tensor_2d(leaves, F32, 1536, M));
        });
        compare(b, "ADD, NORM, MUL, ADD 384" + rows, 0, [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * x = g.ggml_new_tensor_2d(leaves, F32, 384, M);
            ggml_tensor * y = g.base.ggml_add(nodes, x, g.ggml_new_tensor_2d(leaves, F32, 384, M));
            y               = g.ggml_mul(nodes, g.ggml_norm(nodes, y, 1e-12f), g.ggml_new_tensor_1d(leaves, F32, 384));
            return g.base.ggml_add(nodes, y, g.ggml_new_tensor_1d(leaves, F32, 384));
        });
        compare(b, "SOFT_MAX " + std::to_string(M) + " x " + std::to_string(M) + " x 12, masked", 0, [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * x = g.ggml_new_tensor_3d(leaves, F32, M, M, 12);
            return soft_max(nodes, x, g.ggml_new_tensor_2d(leaves, F32, M, M), 0.18f, 0.0f);
        });
    }
    for (const int type : {F32, F16}) {
        for (const bool products : {false, true}) {
            for (const int64_t n : {16, 128, 512}) {
                compare_attention(b, n, n, 32, type, products);
            }
            for (const int64_t queries : {2, 4, 8, 32}) {
                compare_attention(b, queries, 1024, 128, type, products);
            }
        }
    }
    const auto rope = [&](ggml_context * nodes, ggml_context * leaves, ggml_tensor * x, int mode) {
        return ops().ggml_rope(nodes, x, g.ggml_new_tensor_1d(leaves, I32, x->ne[2]), static_cast<int>(x->ne[0]), mode);
    };
    for (const int mode : {0, 2}) {
        const std::string name = mode == 0 ? "ROPE normal" : "ROPE neox";
        for (const int64_t L : {1, 16, 512}) {
            compare(b, name + " 128 x 24 x " + std::to_string(L), 0, [&](ggml_context * nodes, ggml_context * leaves) {
                return rope(nodes, leaves, g.ggml_new_tensor_3d(leaves, F32, 128, 24, L), mode);
            });
        }
        compare(b, "RMS_NORM, MUL, " + name + " 128 x 24 x 512", 0, [&](ggml_context * nodes, ggml_context * leaves) {
            ggml_tensor * x = g.ggml_new_tensor_3d(leaves, F32, 128, 24, 512);
            ggml_tensor * y = g.ggml_mul(nodes, g.ggml_rms_norm(nodes, x, 1e-6f), g.ggml_new_tensor_1d(leaves, F32, 128));
            return rope(nodes, leaves, y, mode);
        });
    }
    g.base.ggml_backend_free(b.stock);
    g.base.ggml_backend_free(b.ours);
    return 0;
}
