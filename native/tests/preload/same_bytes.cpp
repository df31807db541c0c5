// Writes the results of fixed graphs with seeded data to a file.
//   same_bytes plain|patched FILE
// "patched" attaches the device first, with nothing registered.

#include "ggml-ext.h"
#include "support/stock_ggml.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

using namespace ggml_ext::test;

namespace {

[[noreturn]] void fail(const char * what) {
    std::fprintf(stderr, "same_bytes: %s\n", what);
    std::exit(1);
}

// one of ggml's graph-building functions; argument types must be its own
template <typename... A> ggml_tensor * make(const char * name, ggml_context * ctx, A... arguments) {
    static void * base = dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    void *        f    = dlsym(base, name);
    if (f == nullptr) {
        fail(name);
    }
    return reinterpret_cast<ggml_tensor * (*) (ggml_context *, A...)>(f)(ctx, arguments...);
}

constexpr int32_t F32 = 0, F16 = 1, Q8_0 = 8, I32 = 26;

struct inputs {
    ggml_tensor *a, *b, *row, *w, *heads, *positions, *rows;
};

using build_fn = std::function<ggml_tensor *(ggml_context *, const inputs &)>;

std::vector<build_fn> all_graphs() {
    std::vector<build_fn> graphs;
    for (const char * name : {"ggml_sqr", "ggml_abs", "ggml_neg", "ggml_sin", "ggml_cos", "ggml_sum", "ggml_sum_rows", "ggml_mean",
                              "ggml_argmax", "ggml_relu", "ggml_gelu", "ggml_gelu_quick", "ggml_silu", "ggml_sigmoid", "ggml_tanh",
                              "ggml_exp", "ggml_elu", "ggml_step", "ggml_hardswish", "ggml_soft_max", "ggml_cont", "ggml_dup",
                              "ggml_swiglu", "ggml_geglu", "ggml_reglu"}) {
        graphs.push_back([name](ggml_context * c, const inputs & in) { return make(name, c, in.a); });
    }
    for (const char * name : {"ggml_add", "ggml_sub", "ggml_mul", "ggml_div"}) {
        graphs.push_back([name](ggml_context * c, const inputs & in) { return make(name, c, in.a, in.b); });
        graphs.push_back([name](ggml_context * c, const inputs & in) { return make(name, c, in.a, in.row); }); // broadcast
    }
    const auto sqr = [](ggml_context * c, ggml_tensor * x) { return make("ggml_sqr", c, x); };
    graphs.push_back([=](ggml_context * c, const inputs & in) { return make("ggml_sqrt", c, sqr(c, in.a)); });
    graphs.push_back([=](ggml_context * c, const inputs & in) { return make("ggml_log", c, sqr(c, in.a)); });
    for (const char * name : {"ggml_norm", "ggml_rms_norm", "ggml_l2_norm"}) {
        graphs.push_back([=](ggml_context * c, const inputs & in) {
            return make("ggml_mul", c, make(name, c, in.a, 1e-5f), in.row); // what ggml itself may fuse
        });
    }
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_scale", c, in.a, 0.37f); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_clamp", c, in.a, -0.5f, 0.25f); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_leaky_relu", c, in.a, 0.1f, false); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_diag_mask_inf", c, in.a, 3); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_group_norm", c, in.heads, 2, 1e-6f); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_concat", c, in.a, in.b, 1); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_argsort", c, in.a, 0); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_repeat", c, in.row, in.a); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_get_rows", c, in.a, in.rows); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_pad", c, in.a, 3, 2, 0, 0); });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_out_prod", c, in.a, in.b); });
    graphs.push_back([](ggml_context * c, const inputs & in) {
        return make("ggml_cont", c, make("ggml_permute", c, in.heads, 0, 2, 1, 3));
    });
    graphs.push_back([](ggml_context * c, const inputs & in) { return make("ggml_cont", c, make("ggml_transpose", c, in.a)); });
    for (const int32_t type : {F32, F16, Q8_0}) {
        graphs.push_back([type](ggml_context * c, const inputs & in) {
            ggml_tensor * w = type == F32 ? in.w : make("ggml_cast", c, in.w, type);
            return make("ggml_add", c, make("ggml_mul_mat", c, w, in.a), in.row);
        });
    }
    for (const int mode : {0, 2}) { // interleaved and split-half pairs
        graphs.push_back([mode](ggml_context * c, const inputs & in) {
            return make("ggml_rope", c, in.heads, in.positions, 16, mode);
        });
    }
    graphs.push_back([](ggml_context * c, const inputs & in) { // attention by single operations
        ggml_tensor * none   = nullptr;
        ggml_tensor * q      = make("ggml_permute", c, in.heads, 0, 2, 1, 3);
        ggml_tensor * scores = make("ggml_soft_max_ext", c, make("ggml_mul_mat", c, q, q), none, 0.25f, 0.0f);
        ggml_tensor * v      = make("ggml_cont", c, make("ggml_permute", c, in.heads, 1, 2, 0, 3));
        return make("ggml_mul_mat", c, v, scores);
    });
    graphs.push_back([](ggml_context * c, const inputs & in) {
        ggml_tensor * none = nullptr;
        ggml_tensor * q    = make("ggml_permute", c, in.heads, 0, 2, 1, 3);
        ggml_tensor * k    = make("ggml_cast", c, make("ggml_cont", c, q), F16);
        return make("ggml_flash_attn_ext", c, q, k, k, none, 0.25f, 0.0f, 0.0f);
    });
    graphs.push_back([](ggml_context * c, const inputs & in) { // a feed-forward block
        ggml_tensor * x = make("ggml_mul", c, make("ggml_rms_norm", c, in.a, 1e-6f), in.row);
        ggml_tensor * u = make("ggml_mul", c, make("ggml_silu", c, make("ggml_mul_mat", c, in.w, x)), make("ggml_mul_mat", c, in.w, x));
        return make("ggml_add", c, make("ggml_mul_mat", c, in.w, u), in.a);
    });
    return graphs;
}

void run(const build_fn & build, bool direct, unsigned seed, std::FILE * file) {
    const auto &   g           = stock();
    ggml_backend * backend     = g.base.ggml_backend_dev_init(g.cpu, nullptr);
    auto *         set_threads = g.base.ggml_backend_reg_get_proc_address(g.base.ggml_backend_dev_backend_reg(g.cpu), "ggml_backend_set_n_threads");
    reinterpret_cast<void (*)(ggml_backend *, int)>(set_threads)(backend, 2);
    ggml_context * ctx   = g.base.ggml_init({1024 * 1024, nullptr, true});
    ggml_cgraph *  graph = g.base.ggml_new_graph_custom(ctx, 64, false);

    const inputs in = {
        g.ggml_new_tensor_2d(ctx, F32, 64, 9),
        g.ggml_new_tensor_2d(ctx, F32, 64, 9),
        g.ggml_new_tensor_1d(ctx, F32, 64),
        g.ggml_new_tensor_2d(ctx, F32, 64, 64),
        g.ggml_new_tensor_3d(ctx, F32, 16, 4, 9),
        g.ggml_new_tensor_1d(ctx, I32, 9),
        g.ggml_new_tensor_1d(ctx, I32, 4),
    };
    ggml_tensor * out = build(ctx, in);
    g.base.ggml_set_output(out);
    g.base.ggml_build_forward_expand(graph, out);
    for (ggml_tensor * t : {in.a, in.b, in.row, in.w, in.heads, in.positions, in.rows}) {
        g.base.ggml_set_input(t);
        g.base.ggml_build_forward_expand(graph, t);
    }

    ggml_backend_buffer *       buffer = nullptr;
    struct ggml_backend_sched * sched  = nullptr;
    if (direct) {
        buffer = g.ggml_backend_alloc_ctx_tensors(ctx, backend);
    } else {
        sched = g.base.ggml_backend_sched_new(&backend, nullptr, 1, 256, false, true);
        if (!g.ggml_backend_sched_alloc_graph(sched, graph)) {
            fail("no memory for a graph");
        }
    }
    std::mt19937 random(seed);
    for (ggml_tensor * t : {in.a, in.b, in.row, in.w, in.heads}) {
        std::vector<float> values(g.base.ggml_nbytes(t) / sizeof(float));
        for (float & v : values) {
            v = static_cast<float>(random() % 20001) / 10000.0f - 1.0f;
        }
        if (t->buffer != nullptr) { // the scheduler leaves out what the graph does not read
            g.ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(float));
        }
    }
    const int32_t positions[] = {0, 1, 2, 3, 5, 8, 13, 21, 34}, rows[] = {8, 0, 3, 3};
    if (in.positions->buffer != nullptr) {
        g.ggml_backend_tensor_set(in.positions, positions, 0, sizeof(positions));
    }
    if (in.rows->buffer != nullptr) {
        g.ggml_backend_tensor_set(in.rows, rows, 0, sizeof(rows));
    }
    if ((direct ? g.base.ggml_backend_graph_compute(backend, graph) : g.ggml_backend_sched_graph_compute(sched, graph)) != 0) {
        fail("a graph failed");
    }
    std::vector<char> bytes(g.base.ggml_nbytes(out));
    g.ggml_backend_tensor_get(out, bytes.data(), 0, bytes.size());
    if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size()) {
        fail("cannot write");
    }
    if (sched != nullptr) {
        g.base.ggml_backend_sched_free(sched);
    }
    if (buffer != nullptr) {
        g.base.ggml_backend_buffer_free(buffer);
    }
    g.base.ggml_backend_free(backend);
    g.base.ggml_free(ctx);
}

} // namespace

int main(int argc, char ** argv) {
    const bool patched = argc == 3 && std::strcmp(argv[1], "patched") == 0;
    if (argc != 3 || (!patched && std::strcmp(argv[1], "plain") != 0)) {
        fail("expected: plain|patched FILE");
    }
    if (patched) {
        const ggml_ext_load_params params = stock().load_params();
        if (ggml_ext_load(&params) != GGML_EXT_STATUS_SUCCESS || ggml_ext_attach_device(stock().cpu) != GGML_EXT_STATUS_SUCCESS) {
            fail(ggml_ext_last_error());
        }
    }
    std::FILE * file = std::fopen(argv[2], "wb");
    if (file == nullptr) {
        fail("cannot open the file");
    }
    unsigned seed = 1;
    for (const build_fn & build : all_graphs()) {
        for (const bool direct : {false, true}) {
            run(build, direct, seed++, file);
        }
    }
    std::fclose(file);
    std::printf("%s: %u graphs\n", argv[1], seed - 1);
}
