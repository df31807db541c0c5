// Who may read what a group does not write: the program, other devices, ggml's own kernels behind an added source.

#include "core/sequence_rule.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int64_t WIDTH = 16, ROWS = 4;

std::vector<float> mapped(const std::vector<float> & x, double (*f)(double)) {
    std::vector<float> y(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
        y[i] = static_cast<float>(f(x[i]));
    }
    return y;
}

void check_values(const std::vector<float> & values, const std::vector<float> & expected) {
    REQUIRE(values.size() == expected.size());
    for (size_t i = 0; i < values.size(); ++i) {
        CAPTURE(i);
        CHECK(values[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
}

sequence_rule & added(sequence_rule & rule, std::vector<const char *> ops) {
    rule.ops = std::move(ops);
    add(rule);
    return rule;
}

// The attached CPU and a device without the layer under one scheduler, and memory in which one graph after the other is built.
struct two_devices {
    ggml_backend *              cpu    = stock().base.ggml_backend_dev_init(attached_cpu(), nullptr);
    ggml_backend *              second = new_native_second_backend(1);
    struct ggml_backend_sched * sched  = nullptr;
    std::vector<char>           memory = std::vector<char>(size_t{1} << 22);

    two_devices() {
        ggml_backend * both[] = {second, cpu};
        sched                 = stock().base.ggml_backend_sched_new(both, nullptr, 2, 256, false, true);
    }
    ~two_devices() {
        stock().base.ggml_backend_sched_free(sched);
        stock().base.ggml_backend_free(cpu);
        stock().base.ggml_backend_free(second);
    }
    two_devices(const two_devices &)             = delete;
    two_devices & operator=(const two_devices &) = delete;
};

} // namespace

TEST_CASE("FUSE-2: what has memory of its own stays readable: it is no intermediate") {
    sequence_rule rule;
    added(rule, {"SQR", "SCALE"});
    for (const bool own : {true, false}) {
        CAPTURE(own);
        bench         b;
        ggml_tensor * x   = b.input({WIDTH, ROWS});
        ggml_tensor * sqr = b.g.ggml_sqr(b.ctx, b.g.base.ggml_add(b.ctx, x, x));
        ggml_tensor * y   = b.g.base.ggml_add(b.ctx, b.g.ggml_scale(b.ctx, sqr, 10.0f), x);
        b.expand(y);
        ggml_backend_buffer * buffer = own ? b.g.ggml_backend_alloc_ctx_tensors(b.ctx, b.backend) : nullptr;
        rule.runs                    = 0;
        b.allocate();
        const auto in = ramp(WIDTH * ROWS);
        b.set(x, in);
        REQUIRE(b.compute() == 0);
        check_values(b.get(y), mapped(in, [](double v) { return 40.0 * v * v + v; }));
        CHECK(rule.runs == (own ? 0 : 1));
        if (own) {
            check_values(b.get(sqr), mapped(in, [](double v) { return 4.0 * v * v; }));
            CHECK(refusals(b.backend).find("has memory of its own") != std::string::npos);
            b.g.base.ggml_backend_buffer_free(buffer);
        }
    }
}

TEST_CASE("FUSE-2: a graph built again at the same addresses, whose intermediate another device now reads, is planned anew") {
    second_device();
    sequence_rule rule;
    added(rule, {"SQR", "SCALE"});
    const stock_ggml & g = stock();
    two_devices        devices;
    auto & [cpu, second, sched, memory] = devices;
    const auto in                       = ramp(WIDTH * ROWS);
    for (const bool read_outside : {false, true}) {
        CAPTURE(read_outside);
        ggml_context * ctx   = g.base.ggml_init({memory.size(), memory.data(), true});
        ggml_cgraph *  graph = g.base.ggml_new_graph_custom(ctx, 64, false);
        ggml_tensor *  x     = g.ggml_new_tensor_2d(ctx, TYPE_F32, WIDTH, ROWS);
        g.base.ggml_set_input(x);
        ggml_tensor * twice = g.base.ggml_add(ctx, x, x);
        ggml_tensor * sqr   = g.ggml_sqr(ctx, twice);
        ggml_tensor * y     = g.ggml_scale(ctx, sqr, 10.0f);
        ggml_tensor * sum   = g.base.ggml_add(ctx, y, y);
        ggml_tensor * last  = g.ggml_scale(ctx, read_outside ? sqr : sum, 3.0f);
        ggml_tensor * end   = read_outside ? g.ggml_sqr(ctx, last) : last; // another number of nodes: ggml allocates anew
        for (ggml_tensor * t : {sum, end}) {
            g.base.ggml_set_output(t);
            g.base.ggml_build_forward_expand(graph, t);
        }
        g.ggml_backend_sched_reset(sched);
        for (ggml_tensor * t : {x, twice, sqr, y, sum}) {
            g.ggml_backend_sched_set_tensor_backend(sched, t, cpu);
        }
        for (ggml_tensor * t : {last, end}) {
            g.ggml_backend_sched_set_tensor_backend(sched, t, second);
        }
        REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
        g.ggml_backend_tensor_set(x, in.data(), 0, in.size() * sizeof(float));
        rule.runs = 0;
        REQUIRE(g.ggml_backend_sched_graph_compute(sched, graph) == 0);
        std::vector<float> out(in.size());
        g.ggml_backend_tensor_get(end, out.data(), 0, out.size() * sizeof(float));
        check_values(out, mapped(in, read_outside ? [](double v) { return std::pow(3.0 * 4.0 * v * v, 2); } : [](double v) { return 3.0 * 80.0 * v * v; }));
        CHECK(rule.runs == (read_outside ? 0 : 1));
        g.base.ggml_free(ctx);
    }
}

TEST_CASE("FUSE-4: nodes that an evaluation callback cuts out of a graph carry no added source, whatever older plan lies there") {
    second_device();
    sequence_rule rule;
    added(rule, {"SQR", "SOFT_MAX"});
    const stock_ggml & g = stock();
    two_devices        devices;
    auto & [cpu, second, sched, memory] = devices;
    const auto in                       = ramp(WIDTH * ROWS, -0.1f, 0.001f);
    // the first graph's second split and the second one's nodes behind the callback are the same part of the node array
    for (const bool cut : {false, true}) {
        CAPTURE(cut);
        ggml_context * ctx   = g.base.ggml_init({memory.size(), memory.data(), true});
        ggml_cgraph *  graph = g.base.ggml_new_graph_custom(ctx, 64, false);
        ggml_tensor *  x     = g.ggml_new_tensor_2d(ctx, TYPE_F32, WIDTH, ROWS);
        g.base.ggml_set_input(x);
        std::vector<ggml_tensor *> nodes = {x};
        for (int i = 0; i < 5; ++i) {
            nodes.push_back(g.base.ggml_add(ctx, nodes.back(), nodes.back()));
        }
        nodes.push_back(g.ggml_sqr(ctx, nodes.back()));
        ggml_tensor * soft_max = g.ggml_soft_max(ctx, nodes.back());
        nodes.push_back(soft_max);
        nodes.push_back(g.ggml_scale(ctx, nodes.back(), 1.0f));
        g.base.ggml_set_output(nodes.back());
        g.base.ggml_build_forward_expand(graph, nodes.back());
        g.ggml_backend_sched_reset(sched);
        for (size_t i = 0; i < nodes.size(); ++i) {
            g.ggml_backend_sched_set_tensor_backend(sched, nodes[i], !cut && i == 4 ? second : cpu);
        }
        REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
        g.ggml_backend_tensor_set(x, in.data(), 0, in.size() * sizeof(float));
        if (cut) {
            static ggml_tensor * stop = nullptr;
            stop                      = nodes[4];
            g.ggml_backend_sched_set_eval_callback(sched, [](ggml_tensor * t, bool ask, void *) { return !ask || t == stop; }, nullptr);
        }
        REQUIRE(g.ggml_backend_sched_graph_compute(sched, graph) == 0);
        CHECK(soft_max->src[1] == nullptr);
        std::vector<float> out(in.size());
        g.ggml_backend_tensor_get(nodes.back(), out.data(), 0, out.size() * sizeof(float));
        for (int64_t row = 0; row < ROWS; ++row) {
            double sum = 0;
            for (int64_t i = 0; i < WIDTH; ++i) {
                sum += std::exp(std::pow(32.0 * in[row * WIDTH + i], 2));
            }
            for (int64_t i = 0; i < WIDTH; ++i) {
                CHECK(out[row * WIDTH + i] == doctest::Approx(std::exp(std::pow(32.0 * in[row * WIDTH + i], 2)) / sum).epsilon(1e-5));
            }
        }
        g.base.ggml_free(ctx);
    }
}

TEST_CASE("KERNEL-4: workspace lies apart from the output, of I8 nodes too, which have the added leaf's type") {
    constexpr int32_t I8   = 24;
    constexpr int64_t SIZE = 1024;
    attached_cpu();
    static int overlaps = 0, runs = 0;
    struct callbacks {
        static int32_t supports(const ggml_ext_node *, void *) { return 1; }
        static int     prepare(const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) {
            out->workspace_size = SIZE - 128; // with its alignment as large as a node
            return GGML_EXT_STATUS_SUCCESS;
        }
        static int run(const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void *) {
            if (ith == 0) {
                const char * workspace = static_cast<const char *>(p->workspace);
                const char * output    = static_cast<const char *>(p->nodes[0]->dst->data);
                overlaps += workspace < output + SIZE && output < workspace + p->workspace_size;
                ++runs;
            }
            return GGML_EXT_STATUS_SUCCESS;
        }
    };
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.sqr_i8";
    desc.op          = "SQR";
    desc.supports    = callbacks::supports;
    desc.prepare     = callbacks::prepare;
    desc.run         = callbacks::run;
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    for (int graph = 0; graph < 2; ++graph) { // the second one knows what the first one asked for
        bench         b;
        ggml_tensor * x = b.g.ggml_new_tensor_1d(b.ctx, I8, SIZE);
        b.g.base.ggml_set_input(x);
        b.g.base.ggml_set_output(x);
        for (int i = 0; i < 4; ++i) {
            b.expand(b.g.ggml_sqr(b.ctx, x));
        }
        b.allocate();
        REQUIRE(b.compute() == 0);
    }
    CHECK(runs == 8);
    CHECK(overlaps == 0);
}

TEST_CASE("KERNEL-1: a weight that the CPU has repacked into a layout of its own goes to no kernel, alone or in a group") {
    constexpr int32_t Q4_0 = 2;
    constexpr int64_t K = 64, N = 16, M = 4, BLOCK = 18;
    attached_cpu();
    const stock_ggml & g   = stock();
    void *             lib = dlopen(g.base_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    const auto         buft_name =
        reinterpret_cast<const char * (*) (struct ggml_backend_buffer_type *)>(dlsym(lib, "ggml_backend_buft_name"));
    const auto set_usage = reinterpret_cast<void (*)(ggml_backend_buffer *, int)>(dlsym(lib, "ggml_backend_buffer_set_usage"));
    const auto extra     = reinterpret_cast<struct ggml_backend_buffer_type ** (*) (ggml_backend_device *)>(
        g.base.ggml_backend_reg_get_proc_address(g.base.ggml_backend_dev_backend_reg(g.cpu), "ggml_backend_dev_get_extra_bufts"));
    struct ggml_backend_buffer_type * repack = nullptr;
    for (auto ** type = extra != nullptr ? extra(g.cpu) : nullptr; type != nullptr && *type != nullptr; ++type) {
        repack = std::string(buft_name(*type)) == "CPU_REPACK" ? *type : repack;
    }
    if (repack == nullptr) {
        MESSAGE("this ggml repacks nothing");
        return;
    }
    static int           runs = 0;
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.mul_mat_q4";
    desc.op          = "MUL_MAT";
    desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
    desc.run         = [](const ggml_ext_exec_params *, int32_t, int32_t ith, int32_t, void *) -> int {
        if (ith == 0) {
            ++runs;
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(g.cpu, &desc, &r.handle));
    sequence_rule rule;
    added(rule, {"MUL_MAT", "SCALE"});

    bench                      b;
    std::vector<unsigned char> blocks(N * K / 32 * BLOCK);
    std::vector<double>        weight(N * K);
    for (size_t i = 0; i < blocks.size() / BLOCK; ++i) { // a half for the scale, here 1, then 32 numbers of four bits
        unsigned char * block = &blocks[i * BLOCK];
        block[1]              = 0x3c;
        for (size_t j = 0; j < 16; ++j) {
            block[2 + j]            = static_cast<unsigned char>(i * 37 + j * 11);
            weight[i * 32 + j]      = (block[2 + j] & 15) - 8;
            weight[i * 32 + 16 + j] = (block[2 + j] >> 4) - 8;
        }
    }
    ggml_context *        weights = g.base.ggml_init({size_t{1} << 16, nullptr, true});
    ggml_tensor *         w       = g.ggml_new_tensor_2d(weights, Q4_0, K, N);
    ggml_backend_buffer * buffer  = g.base.ggml_backend_buft_alloc_buffer(repack, 1 << 16);
    set_usage(buffer, 1);
    g.base.ggml_backend_tensor_alloc(buffer, w, g.base.ggml_backend_buffer_get_base(buffer));
    g.ggml_backend_tensor_set(w, blocks.data(), 0, blocks.size());

    ggml_tensor * x = b.input({K, M});
    ggml_tensor * y = b.g.ggml_scale(b.ctx, g.base.ggml_mul_mat(b.ctx, w, x), 2.0f);
    b.expand(y);
    b.allocate();
    std::vector<float> in(K * M);
    for (size_t i = 0; i < in.size(); ++i) {
        in[i] = i % 32 == 0 ? 127.0f : static_cast<float>(static_cast<int>(i % 5) - 2); // which ggml's eight bits hold exactly
    }
    b.set(x, in);
    REQUIRE(b.compute() == 0);
    const auto out = b.get(y);
    for (int64_t m = 0; m < M; ++m) {
        for (int64_t n = 0; n < N; ++n) {
            double sum = 0;
            for (int64_t k = 0; k < K; ++k) {
                sum += weight[n * K + k] * in[m * K + k];
            }
            CHECK(out[m * N + n] == doctest::Approx(2.0 * sum).epsilon(1e-6));
        }
    }
    CHECK(runs == 0);
    CHECK(rule.runs == 0);
    CHECK(refusals(b.backend).find("own layout") != std::string::npos);
    g.base.ggml_backend_buffer_free(buffer);
    g.base.ggml_free(weights);
}
