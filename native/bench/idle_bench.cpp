// A process for counting instructions: graphs are allocated by the scheduler and computed on one thread, with the layer attached and
// nothing registered, or with a ggml that nothing was done to. idle_instructions.sh runs it and prints the figures.
//   GGML_EXT_TEST_GGML_DIR=<folder of stock ggml> idle-bench stock|attached tiny|encoder GRAPHS

#include "ggml-ext.h"
#include "support/graph_ops.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

void require(bool condition, const char * what) {
    if (!condition) {
        std::fprintf(stderr, "idle-bench: %s\n", what);
        std::exit(1);
    }
}

// What all graphs of a process have in common: inputs and weights, allocated once
struct model {
    static constexpr int64_t HIDDEN = 384, HEADS = 12, TOKENS = 8, INNER = 1536;

    ggml_context *        ctx;
    ggml_tensor *         tiny;
    ggml_tensor *         tokens;
    ggml_tensor *         square; // one matrix for all projections: what is counted does not depend on the values
    ggml_tensor *         up;
    ggml_tensor *         down;
    ggml_tensor *         row;
    ggml_backend_buffer * buffer;

    explicit model(ggml_backend * backend) : ctx(stock().base.ggml_init({1 << 20, nullptr, true})) {
        const auto & s = stock();
        tiny           = s.ggml_new_tensor_1d(ctx, TYPE_F32, 8);
        tokens         = s.ggml_new_tensor_2d(ctx, TYPE_F32, HIDDEN, TOKENS);
        square         = s.ggml_new_tensor_2d(ctx, TYPE_F32, HIDDEN, HIDDEN);
        up             = s.ggml_new_tensor_2d(ctx, TYPE_F32, HIDDEN, INNER);
        down           = s.ggml_new_tensor_2d(ctx, TYPE_F32, INNER, HIDDEN);
        row            = s.ggml_new_tensor_1d(ctx, TYPE_F32, HIDDEN);
        buffer         = s.ggml_backend_alloc_ctx_tensors(ctx, backend);
        require(buffer != nullptr, "no memory for the weights");
        for (ggml_tensor * t : {tiny, tokens, square, up, down, row}) {
            const std::vector<float> values(s.base.ggml_nbytes(t) / sizeof(float), 0.01f);
            s.ggml_backend_tensor_set(t, values.data(), 0, s.base.ggml_nbytes(t));
        }
    }
    ~model() {
        stock().base.ggml_backend_buffer_free(buffer);
        stock().base.ggml_free(ctx);
    }
    model(const model &)             = delete;
    model & operator=(const model &) = delete;
};

// 512 nodes of 32 bytes: hardly any work but ggml's own for each node
ggml_tensor * tiny_chain(const model & m, ggml_context * ctx) {
    ggml_tensor * h = m.tiny;
    for (int i = 0; i < 128; ++i) {
        h = stock().ggml_sqr(ctx, h);
        h = stock().ggml_scale(ctx, h, 0.5f);
        h = stock().base.ggml_add(ctx, h, m.tiny);
        h = stock().ggml_silu(ctx, h);
    }
    return h;
}

ggml_tensor * attention(const model & m, ggml_context * ctx, ggml_tensor * h) {
    const auto & s     = stock();
    const auto   heads = [&] {
        ggml_tensor * projected = s.base.ggml_add(ctx, s.base.ggml_mul_mat(ctx, m.square, h), m.row);
        return ops().ggml_reshape_3d(ctx, projected, model::HIDDEN / model::HEADS, model::HEADS, model::TOKENS);
    };
    ggml_tensor * q      = s.ggml_permute(ctx, heads(), 0, 2, 1, 3);
    ggml_tensor * k      = s.ggml_permute(ctx, heads(), 0, 2, 1, 3);
    ggml_tensor * v      = s.ggml_cont(ctx, s.ggml_permute(ctx, heads(), 1, 2, 0, 3));
    ggml_tensor * scores = s.ggml_soft_max(ctx, s.ggml_scale(ctx, s.base.ggml_mul_mat(ctx, k, q), 0.177f));
    ggml_tensor * mixed  = s.ggml_cont(ctx, s.ggml_permute(ctx, s.base.ggml_mul_mat(ctx, v, scores), 0, 2, 1, 3));
    return s.base.ggml_mul_mat(ctx, m.square, s.ggml_reshape_2d(ctx, mixed, model::HIDDEN, model::TOKENS));
}

// Six layers of a sentence encoder
ggml_tensor * encoder(const model & m, ggml_context * ctx) {
    const auto &  s    = stock();
    const auto    norm = [&](ggml_tensor * t) { return s.base.ggml_add(ctx, s.ggml_mul(ctx, s.ggml_norm(ctx, t, 1e-6f), m.row), m.row); };
    ggml_tensor * h    = m.tokens;
    for (int layer = 0; layer < 6; ++layer) {
        h                   = norm(s.base.ggml_add(ctx, h, s.base.ggml_add(ctx, attention(m, ctx, h), m.row)));
        ggml_tensor * inner = s.ggml_silu(ctx, s.base.ggml_mul_mat(ctx, m.up, h));
        h                   = norm(s.base.ggml_add(ctx, h, s.base.ggml_mul_mat(ctx, m.down, inner)));
    }
    return h;
}

} // namespace

int main(int argc, char ** argv) {
    require(argc == 4, "usage: idle-bench stock|attached tiny|encoder GRAPHS");
    const bool   attached = std::strcmp(argv[1], "attached") == 0;
    const bool   tiny     = std::strcmp(argv[2], "tiny") == 0;
    const int    n_graphs = std::atoi(argv[3]);
    const auto & s        = stock();
    require(attached || std::strcmp(argv[1], "stock") == 0, "the first argument is neither stock nor attached");
    require(tiny || std::strcmp(argv[2], "encoder") == 0, "the second argument is neither tiny nor encoder");
    if (attached) {
        const ggml_ext_load_params params = s.load_params();
        require(ggml_ext_load(&params) == GGML_EXT_STATUS_SUCCESS && ggml_ext_attach_device(s.cpu) == GGML_EXT_STATUS_SUCCESS,
                ggml_ext_last_error());
    }
    ggml_backend * backend     = s.base.ggml_backend_dev_init(s.cpu, nullptr);
    auto *         set_threads = s.base.ggml_backend_reg_get_proc_address(s.base.ggml_backend_dev_backend_reg(s.cpu), "ggml_backend_set_n_threads");
    require(backend != nullptr && set_threads != nullptr, "no CPU backend");
    reinterpret_cast<void (*)(ggml_backend *, int)>(set_threads)(backend, 1);

    constexpr size_t            SIZE  = 1024; // of a graph, in nodes
    struct ggml_backend_sched * sched = s.base.ggml_backend_sched_new(&backend, nullptr, 1, SIZE, false, true);
    {
        const model m(backend);
        for (int i = 0; i < n_graphs; ++i) {
            ggml_context * ctx   = s.base.ggml_init({SIZE * 512 + s.base.ggml_graph_overhead_custom(SIZE, false), nullptr, true});
            ggml_cgraph *  graph = s.base.ggml_new_graph_custom(ctx, SIZE, false);
            ggml_tensor *  out   = tiny ? tiny_chain(m, ctx) : encoder(m, ctx);
            s.base.ggml_set_output(out);
            s.base.ggml_build_forward_expand(graph, out);
            s.ggml_backend_sched_reset(sched);
            require(s.ggml_backend_sched_alloc_graph(sched, graph), "the graph cannot be allocated");
            require(s.ggml_backend_sched_graph_compute(sched, graph) == 0, "the compute failed");
            s.base.ggml_free(ctx);
        }
    }
    s.base.ggml_backend_sched_free(sched);
    s.base.ggml_backend_free(backend);
    return 0;
}
