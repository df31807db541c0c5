// Graphs that made fusion go wrong elsewhere.

#include "core/sequence_rule.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int64_t WIDTH = 16, ROWS = 4;

void build(bench & b, std::initializer_list<ggml_tensor *> tensors) {
    for (ggml_tensor * t : tensors) {
        b.g.base.ggml_build_forward_expand(b.graph, t);
    }
}

double silu(double x) {
    return x / (1.0 + std::exp(-x));
}

void check_near(const std::vector<float> & values, size_t i, double expected) {
    REQUIRE(values[i] == doctest::Approx(expected).epsilon(1e-5));
}

} // namespace

TEST_CASE("FUSE-2: a terminal CPY into a 2-d view with a larger row stride writes its columns and nothing between them") {
    for (const bool through_workspace : {false, true}) {
        CAPTURE(through_workspace);
        sequence_rule rule;
        rule.ops               = {"SCALE", "CPY"};
        rule.through_workspace = through_workspace;
        add(rule);
        bench         b;
        ggml_tensor * x      = b.input({WIDTH, ROWS});
        ggml_tensor * cache  = b.input({2 * WIDTH, ROWS});
        ggml_tensor * part   = b.g.ggml_view_2d(b.ctx, cache, WIDTH, ROWS, cache->nb[1], WIDTH / 2 * sizeof(float));
        ggml_tensor * scaled = b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, x), 2.0f);
        build(b, {part, scaled, b.g.ggml_cpy(b.ctx, scaled, part)});
        b.allocate();
        const auto in = ramp(WIDTH * ROWS), before = ramp(2 * WIDTH * ROWS, 5.0f);
        b.set(x, in);
        b.set(cache, before);
        REQUIRE(b.compute() == 0);
        CHECK(rule.runs == 1);
        const auto after = b.get(cache);
        for (int64_t row = 0; row < ROWS; ++row) {
            for (int64_t i = 0; i < 2 * WIDTH; ++i) {
                const int64_t column = i - WIDTH / 2;
                const bool    inside = column >= 0 && column < WIDTH;
                const double  v      = inside ? in[row * WIDTH + column] : 0.0;
                check_near(after, row * 2 * WIDTH + i, inside ? 2.0 * v * v : before[row * 2 * WIDTH + i]);
            }
        }
    }
}

TEST_CASE("FUSE-4: a terminal CPY over an input of the group runs singly, or fused where the kernel says OVERLAP_SAFE") {
    for (const bool safe : {false, true}) {
        CAPTURE(safe);
        sequence_rule rule;
        rule.ops               = {"SCALE", "CPY"};
        rule.through_workspace = safe;
        add(rule, safe ? GGML_EXT_KERNEL_OVERLAP_SAFE : 0);
        bench         b;
        ggml_tensor * cache  = b.input({WIDTH, 2 * ROWS});
        ggml_tensor * from   = b.g.ggml_view_2d(b.ctx, cache, WIDTH, ROWS, cache->nb[1], 0);
        ggml_tensor * to     = b.g.ggml_view_2d(b.ctx, cache, WIDTH, ROWS, cache->nb[1], 2 * cache->nb[1]);
        ggml_tensor * scaled = b.g.ggml_scale(b.ctx, from, 2.0f);
        build(b, {from, to, scaled, b.g.ggml_cpy(b.ctx, scaled, to)});
        const auto before = ramp(WIDTH * 2 * ROWS);
        for (int round = 1; round <= 2; ++round) { // the second time with the old addresses
            CAPTURE(round);
            b.g.ggml_backend_sched_reset(b.sched);
            b.allocate();
            b.set(cache, before);
            REQUIRE(b.compute() == 0);
            CHECK(rule.runs == (safe ? round : 0));
            CHECK(stats_of(b.backend).n_singly == (safe ? 0 : round));
            const auto after = b.get(cache);
            for (int64_t i = 0; i < WIDTH * 2 * ROWS; ++i) {
                const int64_t row = i / WIDTH;
                check_near(after, i, row >= 2 && row < 2 + ROWS ? 2.0 * before[i - 2 * WIDTH] : before[i]);
            }
        }
    }
}

TEST_CASE("FUSE-4: an output over an input that only the last node reads is fused, as ggml's own in-place operations are") {
    sequence_rule rule;
    rule.ops = {"SCALE", "ADD"};
    add(rule);
    bench         b;
    ggml_tensor * x      = b.input({WIDTH, ROWS});
    ggml_tensor * other  = b.g.ggml_sqr(b.ctx, b.input({WIDTH, ROWS}));
    ggml_tensor * scaled = b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, x), 0.5f);
    ggml_tensor * sum    = b.g.base.ggml_add(b.ctx, other, scaled);
    ggml_tensor * out    = b.g.ggml_sqr(b.ctx, sum);
    build(b, {other, scaled, sum});
    b.expand(out);
    b.allocate();
    REQUIRE(sum->data == other->data); // else this tests nothing
    const auto in = ramp(WIDTH * ROWS), in2 = ramp(WIDTH * ROWS, -1.0f, 0.25f);
    b.set(x, in);
    b.set(other->src[0], in2);
    REQUIRE(b.compute() == 0);
    CHECK(rule.runs == 1);
    CHECK(stats_of(b.backend).n_singly == 0);
    const auto values = b.get(out);
    for (size_t i = 0; i < values.size(); ++i) {
        check_near(values, i, std::pow(0.5 * in[i] * in[i] + static_cast<double>(in2[i]) * in2[i], 2));
    }
}

TEST_CASE("FUSE-4: an input that the first and the last node read does not get the output's place") {
    sequence_rule rule;
    rule.ops = {"UNARY", "MUL"};
    add(rule);
    bench         b;
    ggml_tensor * x   = b.input({WIDTH, ROWS});
    ggml_tensor * a   = b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, x), 0.5f);
    ggml_tensor * mul = b.g.ggml_mul(b.ctx, a, b.g.ggml_silu(b.ctx, a));
    ggml_tensor * out = b.g.ggml_scale(b.ctx, mul, 3.0f);
    b.expand(out);
    b.allocate();
    const auto in = ramp(WIDTH * ROWS);
    b.set(x, in);
    REQUIRE(b.compute() == 0);
    CHECK(rule.runs == 1);
    CHECK(stats_of(b.backend).n_singly == 0);
    const auto values = b.get(out);
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = 0.5 * in[i] * in[i];
        check_near(values, i, 3.0 * v * silu(v));
    }
}

TEST_CASE("FUSE-2: an explicit in-place node at the end of a match is not fused") {
    sequence_rule rule;
    rule.ops = {"SCALE", "ADD"};
    add(rule);
    bench         b;
    ggml_tensor * x   = b.input({WIDTH, ROWS});
    ggml_tensor * y   = b.input({WIDTH, ROWS});
    ggml_tensor * b2  = b.g.ggml_sqr(b.ctx, y);
    ggml_tensor * sum = b.g.ggml_add_inplace(b.ctx, b2, b.g.ggml_scale(b.ctx, x, 2.0f));
    build(b, {b2});
    b.expand(b.g.ggml_sqr(b.ctx, sum));
    b.allocate();
    const auto in = ramp(WIDTH * ROWS), in2 = ramp(WIDTH * ROWS, -1.0f, 0.25f);
    b.set(x, in);
    b.set(y, in2);
    REQUIRE(b.compute() == 0);
    CHECK(rule.runs == 0);
    CHECK(refusals(b.backend).find("FUSE-2") != std::string::npos);
    const auto values = b.get(b.graph->nodes[b.graph->n_nodes - 1]);
    for (size_t i = 0; i < values.size(); ++i) {
        check_near(values, i, std::pow(2.0 * in[i] + static_cast<double>(in2[i]) * in2[i], 2));
    }
}

TEST_CASE("FUSE-4: gate, up and GLU as one step: the input that dies inside keeps its block until the output is written") {
    sequence_rule rule;
    rule.ops = {"MUL_MAT", "MUL_MAT", "GLU"};
    add(rule);
    bench         b;
    ggml_tensor * in  = b.input({WIDTH, ROWS});
    ggml_tensor * wg  = b.input({WIDTH, WIDTH});
    ggml_tensor * wu  = b.input({WIDTH, WIDTH});
    ggml_tensor * x   = b.g.ggml_sqr(b.ctx, in);
    ggml_tensor * glu = ops().ggml_swiglu_split(b.ctx, b.g.base.ggml_mul_mat(b.ctx, wg, x), b.g.base.ggml_mul_mat(b.ctx, wu, x));
    ggml_tensor * out = b.g.ggml_scale(b.ctx, glu, 0.5f);
    b.expand(out);
    b.allocate();
    CHECK(glu->data != x->data);
    const auto v = ramp(WIDTH * ROWS, -1.0f, 0.0625f), g = ramp(WIDTH * WIDTH, -0.5f, 0.03125f), u = ramp(WIDTH * WIDTH, 0.25f, -0.03125f);
    b.set(in, v);
    b.set(wg, g);
    b.set(wu, u);
    REQUIRE(b.compute() == 0);
    CHECK(rule.runs == 1);
    CHECK(stats_of(b.backend).n_singly == 0);
    const auto values = b.get(out);
    for (int64_t row = 0; row < ROWS; ++row) {
        for (int64_t i = 0; i < WIDTH; ++i) {
            double gate = 0, up = 0;
            for (int64_t k = 0; k < WIDTH; ++k) {
                const double xk = static_cast<double>(v[row * WIDTH + k]) * v[row * WIDTH + k];
                gate += g[i * WIDTH + k] * xk;
                up += u[i * WIDTH + k] * xk;
            }
            CHECK(values[row * WIDTH + i] == doctest::Approx(0.5 * silu(gate) * up).epsilon(1e-4));
        }
    }
}

TEST_CASE("FUSE-1: nodes without elements on some steps are fused on those where they have some") {
    sequence_rule rule;
    rule.ops = {"SCALE", "ADD"};
    add(rule);
    bench b; // one scheduler for all steps
    int   expected_runs = 0;
    for (const int64_t rows : {0, 0, 5, 0, 5, 1, 0, 3}) {
        CAPTURE(rows);
        ggml_context * ctx   = b.g.base.ggml_init({1024 * 1024, nullptr, true});
        ggml_cgraph *  graph = b.g.base.ggml_new_graph_custom(ctx, 64, false);
        ggml_tensor *  x     = b.g.ggml_new_tensor_2d(ctx, TYPE_F32, WIDTH, rows);
        b.g.base.ggml_set_input(x);
        ggml_tensor * real = b.g.ggml_new_tensor_2d(ctx, TYPE_F32, WIDTH, ROWS);
        b.g.base.ggml_set_input(real);
        ggml_tensor * other = b.g.ggml_sqr(ctx, x);
        ggml_tensor * sum   = b.g.base.ggml_add(ctx, b.g.ggml_scale(ctx, b.g.ggml_sqr(ctx, x), 2.0f), other);
        ggml_tensor * kept  = b.g.ggml_scale(ctx, b.g.ggml_sqr(ctx, real), 0.5f);
        for (ggml_tensor * t : {other, sum, kept}) {
            b.g.base.ggml_set_output(t);
            b.g.base.ggml_build_forward_expand(graph, t);
        }
        b.g.ggml_backend_sched_reset(b.sched);
        REQUIRE(b.g.ggml_backend_sched_alloc_graph(b.sched, graph));
        const auto in = ramp(WIDTH * ROWS), partial = ramp(static_cast<size_t>(WIDTH * rows));
        if (rows > 0) {
            b.set(x, partial);
        }
        b.set(real, in);
        REQUIRE(b.g.ggml_backend_sched_graph_compute(b.sched, graph) == 0);
        expected_runs += rows > 0 ? 1 : 0;
        CHECK(rule.runs == expected_runs);
        const auto sums = rows > 0 ? b.get(sum) : std::vector<float>(), values = b.get(kept);
        for (size_t i = 0; i < sums.size(); ++i) {
            check_near(sums, i, 3.0 * partial[i] * partial[i]);
        }
        for (size_t i = 0; i < values.size(); ++i) {
            check_near(values, i, 0.5 * in[i] * in[i]);
        }
        b.g.base.ggml_free(ctx);
    }
}

TEST_CASE("FUSE-1: models that share tensor names, and memory one after the other, keep their own plans") {
    sequence_rule rule;
    rule.ops = {"SCALE", "ADD"};
    add(rule);
    REQUIRE_OK(ggml_ext_attach_device(second_device()));
    sequence_rule on_second;
    on_second.ops = {"SCALE", "ADD"};
    add(on_second, 0, "test.sequence.second", second_device());
    const auto &   g           = stock();
    ggml_backend * backends[2] = {g.base.ggml_backend_dev_init(second_device(), nullptr), g.base.ggml_backend_dev_init(attached_cpu(), nullptr)};
    set_n_threads(backends[0], 1);
    set_n_threads(backends[1], 1);
    ggml_backend_sched * sched = g.base.ggml_backend_sched_new(backends, nullptr, 2, 256, false, true);
    std::vector<char>    memory(256 * 1024);
    for (int step = 0; step < 8; ++step) {
        CAPTURE(step);
        const bool     second_model = step % 3 == 1;
        const int64_t  rows         = second_model ? 7 : 4;
        const float    factor       = second_model ? -3.0f : 0.5f;
        ggml_context * ctx          = g.base.ggml_init({memory.size(), memory.data(), true}); // the same addresses each time
        ggml_cgraph *  graph        = g.base.ggml_new_graph_custom(ctx, 64, false);
        ggml_tensor *  x            = g.ggml_new_tensor_2d(ctx, TYPE_F32, WIDTH, rows);
        g.base.ggml_set_input(x);
        ggml_tensor * h = x;
        for (int layer = 0; layer < 4; ++layer) { // one device after the other: four splits
            ggml_tensor * other  = g.ggml_sqr(ctx, h);
            ggml_tensor * scaled = g.ggml_scale(ctx, h, factor);
            ggml_tensor * sum    = g.base.ggml_add(ctx, scaled, other);
            h                    = g.ggml_scale(ctx, sum, 0.5f);
            g.base.ggml_set_name(h, "blk.ffn");
            for (ggml_tensor * t : {other, scaled, sum, h}) {
                g.base.ggml_build_forward_expand(graph, t);
                g.ggml_backend_sched_set_tensor_backend(sched, t, backends[layer % 2]);
            }
        }
        g.base.ggml_set_output(h);
        const int before = rule.runs, before_second = on_second.runs;
        REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
        CHECK(g.ggml_backend_sched_get_n_splits(sched) == 4);
        const auto in = ramp(static_cast<size_t>(WIDTH * rows), -0.5f, 0.015625f);
        g.ggml_backend_tensor_set(x, in.data(), 0, in.size() * sizeof(float));
        REQUIRE(g.ggml_backend_sched_graph_compute(sched, graph) == 0);
        CHECK(rule.runs + on_second.runs > before + before_second);
        std::vector<float> out(in.size());
        g.ggml_backend_tensor_get(h, out.data(), 0, out.size() * sizeof(float));
        for (size_t i = 0; i < out.size(); ++i) {
            double v = in[i];
            for (int layer = 0; layer < 4; ++layer) {
                v = 0.5 * (v * factor + v * v);
            }
            REQUIRE(out[i] == doctest::Approx(v).epsilon(1e-4));
        }
        g.ggml_backend_sched_reset(sched);
        g.base.ggml_free(ctx);
    }
    CHECK(rule.runs > 0);
    CHECK(on_second.runs > 0);
    g.base.ggml_backend_sched_free(sched);
    g.base.ggml_backend_free(backends[0]);
    g.base.ggml_backend_free(backends[1]);
}

TEST_CASE("FUSE-1: a rule that computes something wrong is switched off by its environment variable") {
    for (const bool off : {false, true}) {
        CAPTURE(off);
        (off ? setenv("GGML_EXT_DISABLE_TEST_WRONG_RULE", "1", 1) : unsetenv("GGML_EXT_DISABLE_TEST_WRONG_RULE"));
        sequence_rule rule;
        rule.ops   = {"SCALE", "UNARY"};
        rule.wrong = true;
        add(rule, 0, "test.wrong-rule");
        bench         b;
        ggml_tensor * x   = b.input({WIDTH, ROWS});
        ggml_tensor * out = b.g.ggml_silu(b.ctx, b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, x), 2.0f));
        b.expand(b.g.ggml_sqr(b.ctx, out));
        b.g.base.ggml_set_output(out);
        b.allocate();
        const auto in = ramp(WIDTH * ROWS);
        b.set(x, in);
        REQUIRE(b.compute() == 0);
        CHECK(rule.runs == (off ? 0 : 1));
        const auto values  = b.get(out);
        size_t     n_right = 0;
        for (size_t i = 0; i < values.size(); ++i) {
            n_right += std::abs(values[i] - silu(2.0 * in[i] * in[i])) < 1e-4;
        }
        CHECK((n_right == values.size()) == off);
    }
    unsetenv("GGML_EXT_DISABLE_TEST_WRONG_RULE");
}
