#include "core/swish.h"
#include "support/graph_ops.h"

using namespace ggml_ext::test;

TEST_CASE("KERNEL-3: a custom operator runs between native nodes, through the scheduler and directly") {
    registration op;
    attached_cpu();
    REQUIRE_OK(register_swish(op));
    swish_counts counts;
    registration kernel;
    const auto   desc = swish_kernel(&counts);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    for (const bool direct : {false, true}) {
        CAPTURE(direct);
        bench         b(direct);
        ggml_tensor * x = b.input({64, 5});
        ggml_tensor * s = swish(b, b.g.base.ggml_add(b.ctx, x, x), 0.5f);
        ggml_tensor * y = b.g.base.ggml_add(b.ctx, s, x);
        b.expand(y);
        b.allocate();
        const auto values = ramp(64 * 5);
        for (int repeat = 0; repeat < 3; ++repeat) {
            b.set(x, values);
            REQUIRE(b.compute() == 0);
            const auto result = b.get(y);
            for (size_t i = 0; i < values.size(); ++i) {
                CHECK(result[i] == doctest::Approx(swish_exact(2.0 * values[i], 0.5) + values[i]).epsilon(1e-6));
            }
        }
    }
    CHECK(counts.runs >= 6);
}

TEST_CASE("KERNEL-1: an override replaces a built-in operation where it is preferred") {
    attached_cpu();
    static int asked = 0;
    struct callbacks {
        static int32_t yes(const ggml_ext_node *, void *) { return 1; }
        static int32_t preferred(const ggml_ext_node * node, void *) {
            ++asked;
            return node->dst->ne[0] == 8 ? 1 : 0;
        }
        // deliberately not ADD, so that it shows
        static int run(const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void *) {
            if (ith == 0) {
                for (size_t i = 0; i < p->nodes[0]->dst->nbytes / sizeof(float); ++i) {
                    static_cast<float *>(p->nodes[0]->dst->data)[i] = 42.0f;
                }
            }
            return 0;
        }
    };
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.add";
    desc.op          = "ADD";
    desc.supports    = callbacks::yes;
    desc.preferred   = callbacks::preferred;
    desc.run         = callbacks::run;
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    for (const int64_t n : {8, 16}) {
        bench         b;
        ggml_tensor * x = b.input({n});
        ggml_tensor * y = b.g.base.ggml_add(b.ctx, x, x);
        b.expand(y);
        b.allocate();
        b.set(x, std::vector<float>(n, 1.5f));
        REQUIRE(b.compute() == 0);
        CHECK(b.get(y)[0] == (n == 8 ? 42.0f : 3.0f));
    }
    CHECK(asked > 0);
}

TEST_CASE("KERNEL-1: a node of UNARY or GLU names its function, before planning and in a plan; others have none") {
    attached_cpu();
    struct seen {
        std::vector<std::string> asked, prepared;

        static std::string name(const ggml_ext_node & node) { return node.function == nullptr ? "none" : node.function; }

        static int32_t supports(const ggml_ext_node * node, void * user_data) {
            static_cast<seen *>(user_data)->asked.push_back(name(*node));
            return 1;
        }
        static int prepare(const ggml_ext_prepare_params * p, ggml_ext_prepared *, void * user_data) {
            static_cast<seen *>(user_data)->prepared.push_back(name(*p->nodes[0]));
            return GGML_EXT_STATUS_SUCCESS;
        }
        static int run(const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) { return GGML_EXT_STATUS_SUCCESS; }
    };
    const auto function_of = [](const char * op, auto && make) {
        seen                 s;
        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.function";
        desc.op          = op;
        desc.supports    = seen::supports;
        desc.prepare     = seen::prepare;
        desc.run         = seen::run;
        desc.user_data   = &s;
        registration kernel;
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
        {
            bench b;
            b.expand(make(b, b.input({8, 2})));
            b.allocate();
            REQUIRE(b.compute() == 0);
        }
        REQUIRE(!s.asked.empty());
        REQUIRE(!s.prepared.empty());
        CHECK(s.asked.back() == s.prepared.back());
        return s.prepared.back();
    };
    const graph_ops & more = ops();
    CHECK(function_of("UNARY", [](bench & b, ggml_tensor * x) { return b.g.ggml_silu(b.ctx, x); }) == "SILU");
    CHECK(function_of("UNARY", [&](bench & b, ggml_tensor * x) { return more.ggml_tanh(b.ctx, x); }) == "TANH");
    CHECK(function_of("GLU", [&](bench & b, ggml_tensor * x) { return more.ggml_swiglu(b.ctx, x); }) == "SWIGLU");
    CHECK(function_of("ADD", [](bench & b, ggml_tensor * x) { return b.g.base.ggml_add(b.ctx, x, x); }) == "none");
}

TEST_CASE("KERNEL-3: errors of prepare and run reach the caller with their message, and the next compute works") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static bool fail_prepare = false, fail_run = false;
    struct callbacks {
        static int prepare(const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) {
            if (fail_prepare) {
                ggml_ext_set_error("no state today");
                return GGML_EXT_STATUS_FAILED;
            }
            out->workspace_size = 1000;
            return GGML_EXT_STATUS_SUCCESS;
        }
        static int run(const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
            if (fail_run && ith == nth - 1) {
                ggml_ext_set_error("bad weather");
                return GGML_EXT_STATUS_FAILED;
            }
            return run_swish(p, phase, ith, nth, user_data);
        }
    };
    auto desc    = swish_kernel(nullptr);
    desc.prepare = callbacks::prepare;
    desc.run     = callbacks::run;
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));

    bench         b;
    ggml_tensor * x = b.input({64});
    ggml_tensor * y = swish(b, x, 1.0f);
    b.expand(y);
    fail_prepare = true;
    b.allocate();
    CHECK(b.compute() == -1);
    CHECK(std::string(ggml_ext_last_error()).find("no state today") != std::string::npos);

    fail_prepare = false;
    b.g.ggml_backend_sched_reset(b.sched);
    bench         c;
    ggml_tensor * cx = c.input({64});
    ggml_tensor * cy = swish(c, cx, 1.0f);
    c.expand(cy);
    c.allocate();
    c.set(cx, ramp(64));
    fail_run = true;
    CHECK(c.compute() == -1);
    CHECK(std::string(ggml_ext_last_error()) == "kernel test.swish.cpu: bad weather");
    fail_run = false;
    REQUIRE(c.compute() == 0);
    check_swish(ramp(64), c.get(cy), 1.0);
}

TEST_CASE("KERNEL-3, SERV-2: a kernel in whole form runs once and may use the CPU backend's threads") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    struct callbacks {
        static int task(void * context, int32_t ith, int32_t nth) {
            return run_swish(static_cast<const ggml_ext_exec_params *>(context), 0, ith, nth, nullptr);
        }
        static int execute(const ggml_ext_exec_params * p, void *) {
            auto * reg      = stock().base.ggml_backend_dev_backend_reg(stock().cpu);
            auto   parallel = reinterpret_cast<ggml_ext_cpu_parallel_v1_t>(
                stock().base.ggml_backend_reg_get_proc_address(reg, "ggml_ext_cpu_parallel_v1"));
            return parallel(p->backend, task, const_cast<ggml_ext_exec_params *>(p));
        }
    };
    auto desc    = swish_kernel(nullptr);
    desc.run     = nullptr;
    desc.execute = callbacks::execute;
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench         b;
    ggml_tensor * x = b.input({64, 3});
    ggml_tensor * y = b.g.base.ggml_add(b.ctx, swish(b, x, 2.0f), x);
    b.expand(y);
    b.allocate();
    b.set(x, ramp(64 * 3));
    REQUIRE(b.compute() == 0);
    const auto in = ramp(64 * 3), out = b.get(y);
    for (size_t i = 0; i < in.size(); ++i) {
        CHECK(out[i] == doctest::Approx(swish_exact(in[i], 2.0) + in[i]).epsilon(1e-6));
    }
    // outside execute it refuses
    auto parallel = reinterpret_cast<ggml_ext_cpu_parallel_v1_t>(stock().base.ggml_backend_reg_get_proc_address(
        stock().base.ggml_backend_dev_backend_reg(stock().cpu), "ggml_ext_cpu_parallel_v1"));
    CHECK(parallel(b.backend, callbacks::task, nullptr) == GGML_EXT_STATUS_UNSUPPORTED);
}

TEST_CASE("KERNEL-2: support queries include extensions; the native query does not; recursion gets the native answer") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static bool inner = true;
    struct callbacks {
        static int32_t supports(const ggml_ext_node * node, void *) {
            inner = stock().base.ggml_backend_dev_supports_op(stock().cpu, node->dst->tensor);
            return 1;
        }
    };
    bench         b;
    ggml_tensor * y = swish(b, b.input({8}), 1.0f);
    CHECK_FALSE(b.g.base.ggml_backend_dev_supports_op(stock().cpu, y));
    auto desc     = swish_kernel(nullptr);
    desc.supports = callbacks::supports;
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    CHECK(b.g.base.ggml_backend_dev_supports_op(stock().cpu, y));
    CHECK_FALSE(inner);
    CHECK_FALSE(ggml_ext_dev_supports_native_op(stock().cpu, y));
}

TEST_CASE("OP-3: a direct compute of an operator without a kernel fails with a message, not a crash") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    bench         b(true);
    ggml_tensor * x = b.input({8});
    ggml_tensor * y = swish(b, x, 1.0f);
    b.expand(y);
    b.allocate();
    b.set(x, ramp(8));
    CHECK(b.compute() == -1);
    CHECK(std::string(ggml_ext_last_error()).find("OP-3") != std::string::npos);
    CHECK(std::isnan(b.get(y)[3]));
}

TEST_CASE("KERNEL-6: a CPU backend in reference mode runs no override") {
    attached_cpu();
    struct callbacks {
        static int32_t yes(const ggml_ext_node *, void *) { return 1; }
        static int     run(const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void *) {
            if (ith == 0) {
                static_cast<float *>(p->nodes[0]->dst->data)[0] = 42.0f;
            }
            return 0;
        }
    };
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.sqr";
    desc.op          = "SQR";
    desc.supports    = callbacks::yes;
    desc.run         = callbacks::run;
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench b;
    auto  set_use_ref = reinterpret_cast<void (*)(ggml_backend *, bool)>(b.g.base.ggml_backend_reg_get_proc_address(
        b.g.base.ggml_backend_dev_backend_reg(stock().cpu), "ggml_backend_cpu_set_use_ref"));
    if (set_use_ref == nullptr) {
        MESSAGE("skipped: this ggml has no reference mode");
        return;
    }
    ggml_tensor * x = b.input({1});
    ggml_tensor * y = b.g.ggml_sqr(b.ctx, x);
    b.expand(y);
    b.allocate();
    b.set(x, {3.0f});
    set_use_ref(b.backend, true);
    REQUIRE(b.compute() == 0);
    CHECK(b.get(y)[0] == 9.0f);
    set_use_ref(b.backend, false);
    b.set(x, {3.0f});
    REQUIRE(b.compute() == 0);
    CHECK(b.get(y)[0] == 42.0f);
}
