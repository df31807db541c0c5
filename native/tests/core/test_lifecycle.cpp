#include "core/scale_add.h"
#include "core/swish.h"

#include <string>
#include <thread>

using namespace ggml_ext::test;

namespace {

void check_refused(int status, int expected, const char * part) {
    CHECK_MESSAGE(status == expected, ggml_ext_status_name(status));
    const std::string message = ggml_ext_last_error();
    CHECK_MESSAGE(message.find(part) != std::string::npos, "\"" << message << "\" has no \"" << part << "\"");
}

template <typename Function> Function cpu_function(const char * name) {
    auto * reg = stock().base.ggml_backend_dev_backend_reg(stock().cpu);
    return reinterpret_cast<Function>(stock().base.ggml_backend_reg_get_proc_address(reg, name));
}

void set_threads(ggml_backend * backend, int n) {
    cpu_function<void (*)(ggml_backend *, int)>("ggml_backend_set_n_threads")(backend, n);
}

// overrides an op by a constant, so that it shows where it ran
ggml_ext_kernel_desc constant_kernel(const char * op, float & value, const char * name = "test.constant") {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.user_data   = &value;
    desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
    desc.run         = [](const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void * user_data) -> int {
        const ggml_ext_tensor * dst = p->nodes[0]->dst;
        if (ith == 0) {
            std::fill_n(static_cast<float *>(dst->data), dst->nbytes / sizeof(float), *static_cast<float *>(user_data));
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    return desc;
}

struct operator_and_kernel {
    registration op, kernel; // the kernel goes first
    swish_counts counts;
    operator_and_kernel() {
        attached_cpu();
        REQUIRE_OK(register_swish(op));
        const auto desc = swish_kernel(&counts);
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    }
};

// a backend that the layer does not run: made before the device is attached
ggml_backend * unattached_backend() {
    const ggml_ext_load_params params = stock().load_params();
    REQUIRE_OK(ggml_ext_load(&params));
    if (ggml_ext_is_attached(stock().cpu)) {
        REQUIRE_OK(ggml_ext_detach_device(stock().cpu));
    }
    return stock().base.ggml_backend_dev_init(stock().cpu, nullptr);
}

} // namespace

TEST_CASE("CORE-2: a backend made before its device is attached runs no extension until it is attached itself") {
    ggml_backend * backend = unattached_backend();
    check_refused(ggml_ext_attach_backend(backend), GGML_EXT_STATUS_NOT_FOUND, "ggml_ext_attach_device");
    check_refused(ggml_ext_attach_backend(nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, "backend is NULL");
    check_refused(ggml_ext_attach_device(nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, "device is NULL");
    attached_cpu();
    CHECK_OK(ggml_ext_attach_device(stock().cpu)); // twice is harmless
    float        value = 42.0f;
    const auto   desc  = constant_kernel("SQR", value);
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));

    bench         b(true); // its own backend is only there to allocate
    ggml_tensor * x = b.input({4});
    ggml_tensor * y = b.g.ggml_sqr(b.ctx, x);
    b.expand(y);
    b.allocate();
    b.set(x, {3.0f, 3.0f, 3.0f, 3.0f});
    REQUIRE(b.g.base.ggml_backend_graph_compute(backend, b.graph) == 0);
    CHECK(b.get(y)[0] == 9.0f);
    ggml_ext_backend_stats stats{};
    stats.struct_size = sizeof(stats);
    check_refused(ggml_ext_get_backend_stats(backend, &stats), GGML_EXT_STATUS_NOT_FOUND, "not attached");

    CHECK_OK(ggml_ext_attach_backend(backend));
    CHECK_OK(ggml_ext_attach_backend(backend));
    REQUIRE(b.g.base.ggml_backend_graph_compute(backend, b.graph) == 0);
    CHECK(b.get(y)[0] == 42.0f);
    CHECK_OK(ggml_ext_get_backend_stats(backend, &stats));
    b.g.base.ggml_backend_free(backend);
}

TEST_CASE("CORE-2: detaching is refused while backends live, then gives ggml back unpatched") {
    attached_cpu();
    ggml_ext_registration * handle = nullptr;
    {
        bench b;
        check_refused(ggml_ext_detach_device(stock().cpu), GGML_EXT_STATUS_IN_USE, "live attached backend");
        CHECK(ggml_ext_is_attached(stock().cpu));
    }
    CHECK(cpu_function<void *>("ggml_ext_cpu_parallel_v1") != nullptr);
    CHECK_OK(ggml_ext_detach_device(stock().cpu));
    CHECK_FALSE(ggml_ext_is_attached(stock().cpu));
    CHECK(cpu_function<void *>("ggml_ext_cpu_parallel_v1") == nullptr);
    check_refused(ggml_ext_detach_device(stock().cpu), GGML_EXT_STATUS_NOT_FOUND, "not attached");
    float      value = 42.0f;
    const auto desc  = constant_kernel("SQR", value);
    check_refused(ggml_ext_register_kernel(stock().cpu, &desc, &handle), GGML_EXT_STATUS_INVALID_ARGUMENT, "not attached");

    for (int repeat = 0; repeat < 3; ++repeat) { // and again
        attached_cpu();
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &handle));
        CHECK_OK(ggml_ext_unregister(handle));
        CHECK_OK(ggml_ext_detach_device(stock().cpu));
    }
}

TEST_CASE("CORE-4: a backend is freed with its plans; the kernel's states are destroyed, each once") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static std::atomic<int> prepared, destroyed;
    prepared = destroyed = 0;
    auto desc            = swish_kernel(nullptr);
    desc.prepare         = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->state = new int(++prepared);
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.destroy = [](void * state, void *) {
        delete static_cast<int *>(state);
        ++destroyed;
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    ggml_ext_plan * copy = nullptr;
    for (const bool compute : {true, false}) {
        bench         b;
        ggml_tensor * x = b.input({16});
        ggml_tensor * y = swish(b, swish(b, x, 1.0f), 2.0f);
        b.expand(y);
        b.allocate();
        if (compute) {
            b.set(x, ramp(16));
            REQUIRE(b.compute() == 0);
            REQUIRE_OK(ggml_ext_plan_copy(b.backend, 0, &copy));
        }
        CHECK(prepared > destroyed);
    }
    CHECK(prepared >= 4);
    CHECK(prepared == destroyed);

    // the copy of a plan outlives backend, graph and kernel state
    ggml_ext_plan_step step{};
    step.struct_size = sizeof(step);
    REQUIRE_OK(ggml_ext_plan_get_step(copy, 0, &step));
    CHECK(std::string(step.kernel) == "test.swish.cpu");
    ggml_ext_plan_free(copy);
    ggml_ext_plan_free(nullptr);
}

TEST_CASE("FUSE-1: a graph scheduled 100 times keeps one plan and its results") {
    operator_and_kernel k;
    bench               b;
    ggml_tensor *       x = b.input({16, 2});
    ggml_tensor *       t = b.g.base.ggml_add(b.ctx, x, x);
    for (int i = 0; i < 4; ++i) {
        t = swish(b, t, 0.5f);
    }
    ggml_tensor * y = b.g.base.ggml_add(b.ctx, t, x);
    b.expand(y);
    std::vector<float> first;
    for (int i = 0; i < 100; ++i) {
        b.g.ggml_backend_sched_reset(b.sched);
        b.allocate();
        b.set(x, ramp(32));
        REQUIRE(b.compute() == 0);
        if (i == 0) {
            first = b.get(y);
            for (size_t j = 0; j < first.size(); ++j) {
                double v = 2.0 * ramp(32)[j];
                for (int n = 0; n < 4; ++n) {
                    v = swish_exact(v, 0.5);
                }
                CHECK(first[j] == doctest::Approx(v + ramp(32)[j]).epsilon(1e-5));
            }
        } else {
            REQUIRE(b.get(y) == first);
        }
    }
    const auto stats = stats_of(b.backend);
    CHECK(stats.n_planned <= 2);
    CHECK(stats.n_planned_late == 0);
    CHECK(stats.n_computed == 100);
}

TEST_CASE("KERNEL-4: a graph is allocated many times without a compute, then computes right") {
    attached_cpu();
    scale_add_rule rule;
    rule.workspace = 5000;
    registration r;
    REQUIRE_OK(register_scale_add(r, rule));
    bench         b;
    ggml_tensor * x = b.input({64});
    ggml_tensor * z = b.input({64});
    ggml_tensor * y = b.g.base.ggml_add(b.ctx, b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, x), 2.0f), z);
    for (int i = 0; i < 4; ++i) {
        y = b.g.ggml_sqr(b.ctx, b.g.ggml_scale(b.ctx, y, 0.25f));
    }
    b.expand(y);
    for (int i = 0; i < 20; ++i) {
        b.g.ggml_backend_sched_reset(b.sched);
        b.allocate();
    }
    b.set(x, ramp(64));
    b.set(z, ramp(64, 1.0f));
    REQUIRE(b.compute() == 0);
    CHECK(rule.runs == 1);
    const auto out = b.get(y);
    for (size_t i = 0; i < out.size(); ++i) {
        double v = 2.0 * ramp(64)[i] * ramp(64)[i] + ramp(64, 1.0f)[i];
        for (int n = 0; n < 4; ++n) {
            v = 0.0625 * v * v;
        }
        CHECK(out[i] == doctest::Approx(v).epsilon(1e-5));
    }
}

TEST_CASE("KERNEL-4: a graph that was allocated by a backend which is gone runs on another one, on an unattached one too") {
    for (const bool attached : {true, false}) {
        CAPTURE(attached);
        ggml_backend * other = attached ? nullptr : unattached_backend();
        attached_cpu();
        scale_add_rule rule;
        rule.workspace = 5000;
        registration r;
        REQUIRE_OK(register_scale_add(r, rule));
        const auto &               g     = stock();
        ggml_context *             ctx   = g.base.ggml_init({1024 * 1024, nullptr, true});
        ggml_cgraph *              graph = g.base.ggml_new_graph_custom(ctx, 64, false);
        ggml_tensor *              x     = g.ggml_new_tensor_1d(ctx, ggml_ext::TYPE_F32, 64);
        ggml_tensor *              sum   = x;
        std::vector<ggml_tensor *> nodes;
        g.base.ggml_set_input(x);
        for (int i = 0; i < 6; ++i) {
            sum = g.base.ggml_add(ctx, g.ggml_scale(ctx, sum, 0.5f), x);
        }
        g.base.ggml_set_output(sum);
        g.base.ggml_build_forward_expand(graph, sum);
        const auto schedule = [&](ggml_backend * backend, bool compute) {
            auto * sched = g.base.ggml_backend_sched_new(&backend, nullptr, 1, 256, false, true);
            REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
            if (compute) {
                const auto values = ramp(64);
                g.ggml_backend_tensor_set(x, values.data(), 0, sizeof(float) * 64);
                REQUIRE(g.ggml_backend_sched_graph_compute(sched, graph) == 0);
                std::vector<float> out(64);
                g.ggml_backend_tensor_get(sum, out.data(), 0, sizeof(float) * 64);
                for (size_t i = 0; i < out.size(); ++i) {
                    double v = values[i];
                    for (int n = 0; n < 6; ++n) {
                        v = 0.5 * v + values[i];
                    }
                    CHECK(out[i] == doctest::Approx(v).epsilon(1e-6));
                }
            }
            g.base.ggml_backend_sched_free(sched);
            g.base.ggml_backend_free(backend);
            // the scheduler's memory is gone: the graph starts again without addresses
            for (int i = 0; i < g.base.ggml_graph_n_nodes(graph); ++i) {
                ggml_tensor * node = g.base.ggml_graph_node(graph, i);
                node->data         = nullptr;
                node->buffer       = nullptr;
            }
            x->data   = nullptr;
            x->buffer = nullptr;
        };
        schedule(g.base.ggml_backend_dev_init(g.cpu, nullptr), false); // allocated, never computed
        schedule(attached ? g.base.ggml_backend_dev_init(g.cpu, nullptr) : other, true);
        CHECK(rule.runs == (attached ? 6 : 0));
        for (int i = 0; i < g.base.ggml_graph_n_nodes(graph) && attached; ++i) {
            const ggml_tensor * node = g.base.ggml_graph_node(graph, i);
            CHECK(node->src[2] == nullptr); // nothing that was added is left
        }
        g.base.ggml_free(ctx);
    }
}

TEST_CASE("CORE-4: two backends of one device compute on two threads") {
    operator_and_kernel      k;
    std::atomic<int>         wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
        threads.emplace_back([&wrong, t] {
            const auto &   g       = stock();
            ggml_backend * backend = g.base.ggml_backend_dev_init(g.cpu, nullptr);
            set_threads(backend, 2);
            struct ggml_backend_sched * sched = g.base.ggml_backend_sched_new(&backend, nullptr, 1, 256, false, true);
            for (int round = 0; round < 10; ++round) {
                ggml_context * ctx   = g.base.ggml_init({1024 * 1024, nullptr, true});
                ggml_cgraph *  graph = g.base.ggml_new_graph_custom(ctx, 64, false);
                ggml_tensor *  x     = g.ggml_new_tensor_2d(ctx, ggml_ext::TYPE_F32, 16, 1 + t + round);
                const float    beta  = 1.0f + static_cast<float>(t);
                ggml_tensor *  y     = nullptr;
                wrong += ggml_ext_op_create(ctx, "test.swish.v1", 1, &x, &beta, sizeof(beta), &y) != GGML_EXT_STATUS_SUCCESS;
                g.base.ggml_set_input(x);
                g.base.ggml_set_output(y);
                g.base.ggml_build_forward_expand(graph, y);
                g.ggml_backend_sched_reset(sched);
                wrong += g.ggml_backend_sched_alloc_graph(sched, graph) ? 0 : 1;
                std::vector<float> in = ramp(16 * (1 + t + round)), out(in.size());
                g.ggml_backend_tensor_set(x, in.data(), 0, in.size() * sizeof(float));
                wrong += g.ggml_backend_sched_graph_compute(sched, graph);
                g.ggml_backend_tensor_get(y, out.data(), 0, out.size() * sizeof(float));
                for (size_t i = 0; i < in.size(); ++i) {
                    wrong += std::abs(out[i] - swish_exact(in[i], beta)) > 1e-5;
                }
                g.base.ggml_free(ctx);
            }
            g.base.ggml_backend_sched_free(sched);
            g.base.ggml_backend_free(backend);
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    CHECK(wrong == 0);
    CHECK(k.counts.runs >= 20);
}

TEST_CASE("OP-3: on a CPU backend that the layer does not run, the marker runs the registered kernel") {
    ggml_backend *      backend = unattached_backend();
    operator_and_kernel k;
    bench               b(true);
    ggml_tensor *       x = b.input({64, 3});
    ggml_tensor *       y = swish(b, b.g.base.ggml_add(b.ctx, x, x), 0.5f);
    b.expand(y);
    b.allocate();
    b.set(x, ramp(64 * 3));
    set_threads(backend, 2);
    REQUIRE(b.g.base.ggml_backend_graph_compute(backend, b.graph) == 0);
    const auto in = ramp(64 * 3), out = b.get(y);
    for (size_t i = 0; i < in.size(); ++i) {
        CHECK(out[i] == doctest::Approx(swish_exact(2.0 * in[i], 0.5)).epsilon(1e-6));
    }
    CHECK(k.counts.runs == 1);
    b.g.base.ggml_backend_free(backend);
}

TEST_CASE("OP-3: where the marker finds no kernel that works, the output is NaN (all bits for integers) and the log says why") {
    static std::string log;
    ggml_backend *     backend = unattached_backend();
    attached_cpu();
    static int32_t   type;
    ggml_ext_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.typed.v1";
    desc.infer       = [](int32_t, const ggml_ext_tensor * const *, const void *, ggml_ext_output * out, void *) -> int {
        out->type  = type;
        out->ne[0] = 33;
        out->ne[1] = out->ne[2] = out->ne[3] = 1;
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration op;
    REQUIRE_OK(ggml_ext_register_op(&desc, &op.handle));
    ggml_ext_log_set([](int32_t, const char * text, void *) { log += text; }, nullptr);

    const auto run = [&](std::vector<unsigned char> & bytes) {
        log.clear();
        bench         b(true);
        ggml_tensor * y = nullptr;
        REQUIRE_OK(ggml_ext_op_create(b.ctx, "test.typed.v1", 0, nullptr, nullptr, 0, &y));
        b.expand(y);
        b.allocate();
        bytes.assign(b.g.base.ggml_nbytes(y), 0);
        b.g.ggml_backend_tensor_set(y, bytes.data(), 0, bytes.size());
        REQUIRE(b.g.base.ggml_backend_graph_compute(backend, b.graph) == 0); // ggml calls a void function: it cannot fail
        b.g.ggml_backend_tensor_get(y, bytes.data(), 0, bytes.size());
    };
    std::vector<unsigned char> bytes;
    for (const int32_t now : {0 /* F32 */, 1 /* F16 */, 30 /* BF16 */, 28 /* F64 */, 24 /* I8 */, 26 /* I32 */}) {
        CAPTURE(now);
        type = now;
        run(bytes);
        CHECK(log.find("OP-3: operator test.typed.v1 has no CPU kernel") != std::string::npos);
        for (size_t i = 0; i < 33; ++i) {
            uint64_t     bits = 0;
            const size_t size = bytes.size() / 33;
            std::memcpy(&bits, bytes.data() + i * size, size);
            switch (now) {
                case 0:  CHECK((bits & 0x7fffffff) > 0x7f800000); break;
                case 1:  CHECK((bits & 0x7fff) > 0x7c00); break;
                case 30: CHECK((bits & 0x7fff) > 0x7f80); break;
                case 28: CHECK((bits & 0x7fffffffffffffff) > 0x7ff0000000000000); break;
                case 24: CHECK(bits == 0xff); break;
                default: CHECK(bits == 0xffffffff);
            }
        }
    }

    // kernels that fail: in supports, in prepare, in run, with impossible phases
    type            = 0;
    const auto with = [&](auto change, const char * reason) {
        ggml_ext_kernel_desc kernel{};
        kernel.struct_size = sizeof(kernel);
        kernel.name        = "test.failing";
        kernel.op          = "test.typed.v1";
        kernel.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
        kernel.run         = [](const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) -> int { return 0; };
        change(kernel);
        registration r;
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &kernel, &r.handle));
        run(bytes);
        CHECK_MESSAGE(log.find(reason) != std::string::npos, log);
        float first;
        std::memcpy(&first, bytes.data(), sizeof(first));
        CHECK(std::isnan(first));
    };
    with([](auto & d) { d.supports = [](const ggml_ext_node *, void *) -> int32_t { ggml_ext_set_error("too odd"); return 0; }; }, "too odd");
    with([](auto & d) {
        d.prepare = [](const ggml_ext_prepare_params *, ggml_ext_prepared *, void *) -> int {
            ggml_ext_set_error("no state");
            return GGML_EXT_STATUS_FAILED;
        };
    },
         "kernel test.failing: prepare failed: no state");
    with([](auto & d) {
        d.prepare = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int { out->n_phases = 0; return 0; };
    },
         "n_phases is 0");
    with([](auto & d) {
        d.run = [](const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) -> int {
            ggml_ext_set_error("bad weather");
            return GGML_EXT_STATUS_FAILED;
        };
    },
         "kernel test.failing: bad weather");
    ggml_ext_log_set(nullptr, nullptr);
    stock().base.ggml_backend_free(backend);
}

TEST_CASE("KERNEL-3: a backend's abort callback stops between the phases of a step; the next compute is fine") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static std::atomic<bool> stop;
    static std::atomic<int>  phases;
    static bool              armed;
    auto                     desc = swish_kernel(nullptr);
    desc.prepare                  = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->n_phases = 3;
        out->n_tasks  = 1;
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.run = [](const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t nth, void *) -> int {
        ++phases;
        if (phase == 0 && armed) {
            stop = true;
        }
        return phase == 2 ? run_swish(p, phase, ith, nth, nullptr) : 0;
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench b;
    cpu_function<void (*)(ggml_backend *, bool (*)(void *), void *)>("ggml_backend_set_abort_callback")(
        b.backend, [](void *) -> bool { return stop; }, nullptr);
    ggml_tensor * x = b.input({64});
    ggml_tensor * y = swish(b, x, 1.0f);
    b.expand(y);
    b.allocate();
    for (const bool now : {false, true, false}) {
        armed  = now;
        stop   = false;
        phases = 0;
        b.set(x, ramp(64));
        CHECK(b.compute() == (now ? 1 : 0)); // GGML_STATUS_ABORTED
        CHECK(phases == (now ? 1 : 3));
    }
    check_swish(ramp(64), b.get(y), 1.0);
}

TEST_CASE("SERV-2: the parallel service stops when the backend's abort callback asks, and refuses to nest") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static std::atomic<bool>          stop;
    static ggml_ext_cpu_parallel_v1_t parallel;
    static int                        nested, first;
    parallel     = cpu_function<ggml_ext_cpu_parallel_v1_t>("ggml_ext_cpu_parallel_v1");
    auto desc    = swish_kernel(nullptr);
    desc.run     = nullptr;
    desc.execute = [](const ggml_ext_exec_params * p, void *) -> int {
        static ggml_backend * backend;
        backend          = p->backend;
        const auto clean = [](void *, int32_t ith, int32_t) -> int {
            if (ith == 0) {
                nested = parallel(backend, [](void *, int32_t, int32_t) { return 0; }, nullptr);
            }
            return 0;
        };
        const auto swish = [](void * context, int32_t ith, int32_t nth) {
            return run_swish(static_cast<const ggml_ext_exec_params *>(context), 0, ith, nth, nullptr);
        };
        first = parallel(p->backend, clean, nullptr);
        return first != 0 ? first : parallel(p->backend, swish, const_cast<ggml_ext_exec_params *>(p));
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench b;
    set_threads(b.backend, 2);
    cpu_function<void (*)(ggml_backend *, bool (*)(void *), void *)>("ggml_backend_set_abort_callback")(
        b.backend, [](void *) -> bool { return stop; }, nullptr);
    ggml_tensor * x = b.input({64});
    ggml_tensor * y = swish(b, x, 1.0f);
    b.expand(y);
    b.allocate();
    for (const bool now : {false, true, false}) {
        stop = now;
        b.set(x, ramp(64));
        CHECK(b.compute() == (now ? 1 : 0));
        CHECK(first == (now ? GGML_EXT_STATUS_ABORTED : GGML_EXT_STATUS_SUCCESS));
    }
    CHECK(nested == GGML_EXT_STATUS_UNSUPPORTED);
    check_swish(ramp(64), b.get(y), 1.0);
}

TEST_CASE("SERV-2: the message of a failed task reaches the caller of compute, from whichever thread it came") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    auto desc    = swish_kernel(nullptr);
    desc.run     = nullptr;
    desc.execute = [](const ggml_ext_exec_params * p, void *) -> int {
        const auto task = [](void *, int32_t ith, int32_t nth) -> int {
            if (ith != nth - 1) {
                return 0;
            }
            ggml_ext_set_error("task of the last thread");
            return GGML_EXT_STATUS_FAILED;
        };
        ggml_ext_set_error("something old");
        return cpu_function<ggml_ext_cpu_parallel_v1_t>("ggml_ext_cpu_parallel_v1")(p->backend, task, nullptr);
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench b;
    set_threads(b.backend, 2);
    ggml_tensor * y = swish(b, b.input({64}), 1.0f);
    b.expand(y);
    b.allocate();
    CHECK(b.compute() == -1);
    CHECK(std::string(ggml_ext_last_error()) == "kernel test.swish.cpu: task of the last thread");
}

TEST_CASE("KERNEL-3: a step runs on no more tasks than it asks for, a barrier lies between its phases") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static int              n_tasks;
    static std::atomic<int> done[2], early, most;
    auto                    desc = swish_kernel(nullptr);
    desc.prepare                 = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->n_phases = 2;
        out->n_tasks  = n_tasks;
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.run = [](const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t nth, void *) -> int {
        if (phase == 1 && done[0] != nth) {
            ++early;
        }
        most = std::max(most.load(), nth);
        ++done[phase];
        return phase == 1 ? run_swish(p, phase, ith, nth, nullptr) : 0;
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    for (const int limit : {0, 1, 2, 64}) {
        CAPTURE(limit);
        n_tasks = limit;
        early = most = 0;
        bench b;
        set_threads(b.backend, 3);
        ggml_tensor * x = b.input({64, 4});
        ggml_tensor * y = swish(b, b.g.base.ggml_mul_mat(b.ctx, b.input({64, 64}), x), 1.0f);
        b.expand(y);
        b.allocate();
        for (int repeat = 0; repeat < 10; ++repeat) {
            done[0] = done[1] = 0;
            REQUIRE(b.compute() == 0);
            const int expected = limit == 0 || limit > 3 ? 3 : limit;
            CHECK(done[0] == expected);
            CHECK(done[1] == expected);
        }
        CHECK(early == 0);
    }
}

TEST_CASE("KERNEL-3: what prepare asks for is checked") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static int phases, tasks;
    auto       desc = swish_kernel(nullptr);
    desc.prepare    = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->n_phases = phases;
        out->n_tasks  = tasks;
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    const int wrong[][2] = {{0, 1}, {-1, 1}, {1, -1}};
    for (const auto & now : wrong) {
        phases = now[0];
        tasks  = now[1];
        bench b;
        b.expand(swish(b, b.input({8}), 1.0f));
        b.allocate();
        CHECK(b.compute() == -1);
        check_refused(GGML_EXT_STATUS_FAILED, GGML_EXT_STATUS_FAILED, ("n_phases is " + std::to_string(phases)).c_str());
    }
}

TEST_CASE("KERNEL-4: workspace is aligned to 128 bytes and as large as asked for, scheduled or direct") {
    attached_cpu();
    registration op;
    REQUIRE_OK(register_swish(op));
    static size_t size;
    static int    wrong, runs;
    wrong = runs = 0;
    auto desc    = swish_kernel(nullptr);
    desc.prepare = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->workspace_size = size;
        out->n_tasks        = 1;
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.run = [](const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t nth, void *) -> int {
        ++runs;
        wrong += p->workspace_size < size || (size > 0 && reinterpret_cast<uintptr_t>(p->workspace) % 128 != 0);
        if (size > 0) {
            std::memset(p->workspace, 0xff, p->workspace_size);
        }
        return run_swish(p, phase, ith, nth, nullptr);
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    for (const bool direct : {false, true}) {
        for (const size_t now : {size_t{0}, size_t{1}, size_t{127}, size_t{100001}}) {
            for (const int length : {1, 6}) { // short graphs have workspace of their own
                size = now;
                bench         b(direct);
                ggml_tensor * x = b.input({33});
                ggml_tensor * y = x;
                for (int i = 0; i < length; ++i) {
                    y = swish(b, y, 1.0f);
                }
                b.expand(y);
                b.allocate();
                b.set(x, ramp(33));
                REQUIRE(b.compute() == 0);
                if (length == 1) {
                    check_swish(ramp(33), b.get(y), 1.0);
                }
            }
        }
    }
    CHECK(runs == 2 * 4 * 7);
    CHECK(wrong == 0);
}

TEST_CASE("KERNEL-5: views and explicit in-place nodes are not intercepted") {
    attached_cpu();
    float        value = 42.0f;
    const auto   add   = constant_kernel("ADD", value, "test.add");
    const auto   view  = constant_kernel("VIEW", value, "test.view");
    const auto   shape = constant_kernel("RESHAPE", value, "test.reshape");
    registration a, v, s;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &add, &a.handle));
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &view, &v.handle));
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &shape, &s.handle));
    bench         b;
    ggml_tensor * x = b.input({8, 2});
    ggml_tensor * t = b.g.ggml_sqr(b.ctx, x);
    ggml_tensor * y = b.g.ggml_add_inplace(b.ctx, t, x);
    ggml_tensor * z = b.g.ggml_reshape_2d(b.ctx, y, 4, 4);
    ggml_tensor * w = b.g.ggml_view_2d(b.ctx, z, 2, 2, z->nb[1], 0);
    ggml_tensor * o = b.g.base.ggml_add(b.ctx, b.g.ggml_cont(b.ctx, w), b.g.ggml_cont(b.ctx, w));
    b.expand(y);
    b.expand(o);
    b.allocate();
    b.set(x, ramp(16));
    REQUIRE(b.compute() == 0);
    for (size_t i = 0; i < 16; ++i) {
        const float in = ramp(16)[i];
        CHECK(b.get(y)[i] == in * in + in);
    }
    CHECK(b.get(o)[0] == 42.0f); // an ADD with storage of its own
}

TEST_CASE("KERNEL-5: the allocator may give an override's output the storage of its input") {
    attached_cpu();
    static int shared;
    shared      = 0;
    float value = 0.0f;
    auto  desc  = constant_kernel("ADD", value);
    desc.run    = [](const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t nth, void *) -> int {
        const ggml_ext_node * node = p->nodes[0];
        const auto *          a    = static_cast<const float *>(node->src[0]->data);
        const auto *          b    = static_cast<const float *>(node->src[1]->data);
        auto *                y    = static_cast<float *>(node->dst->data);
        const int64_t         n    = static_cast<int64_t>(node->dst->nbytes / sizeof(float));
        for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; ++i) {
            y[i] = a[i] + b[i];
        }
        if (ith == 0 && (a == y || b == y)) {
            ++shared;
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration kernel;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    bench         b;
    ggml_tensor * x = b.input({64, 8});
    ggml_tensor * t = x;
    for (int i = 0; i < 6; ++i) {
        t = b.g.base.ggml_add(b.ctx, b.g.ggml_scale(b.ctx, t, 0.5f), x);
    }
    b.expand(t);
    b.allocate();
    b.set(x, ramp(512));
    REQUIRE(b.compute() == 0);
    const auto in = ramp(512), out = b.get(t);
    for (size_t i = 0; i < in.size(); ++i) {
        double v = in[i];
        for (int n = 0; n < 6; ++n) {
            v = 0.5 * v + in[i];
        }
        CHECK(out[i] == doctest::Approx(v).epsilon(1e-6));
    }
    CHECK(shared > 0); // else this test shows nothing
}

TEST_CASE("KERNEL-3: nothing runs for a tensor without elements") {
    attached_cpu();
    static std::atomic<int> runs;
    runs = 0;
    for (const bool whole : {false, true}) {
        for (const bool direct : {false, true}) {
            CAPTURE(whole);
            CAPTURE(direct);
            float value  = 42.0f;
            auto  desc   = constant_kernel("ADD", value);
            desc.run     = nullptr;
            desc.execute = nullptr;
            if (whole) {
                desc.execute = [](const ggml_ext_exec_params *, void *) -> int { return ++runs, 0; };
            } else {
                desc.run = [](const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) -> int { return ++runs, 0; };
            }
            registration kernel;
            REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
            bench         b(direct);
            ggml_tensor * x = b.input({4, 0, 2});
            ggml_tensor * y = b.g.base.ggml_add(b.ctx, x, x);
            ggml_tensor * z = b.input({3});
            ggml_tensor * w = b.g.ggml_sqr(b.ctx, z);
            b.expand(y);
            b.expand(w);
            b.allocate();
            b.set(z, {2.0f, 3.0f, 4.0f});
            REQUIRE(b.compute() == 0);
            CHECK(b.get(w) == std::vector<float>{4.0f, 9.0f, 16.0f});
        }
    }
    CHECK(runs == 0);
}
