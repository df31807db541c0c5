// JAVA-7: what observers get without computing, and what of it was timed.

#include "core/swish.h"

using namespace ggml_ext::test;

namespace {

int32_t refuses_all(const ggml_ext_node *, void *) {
    ggml_ext_set_error("only on Sundays");
    return 0;
}

int32_t prefers_native(const ggml_ext_node *, void *) {
    return 0;
}

int32_t supports_all(const ggml_ext_node *, void *) {
    return 1;
}

int32_t fails(const ggml_ext_node *, void *) {
    ggml_ext_set_error("lost its table");
    return -GGML_EXT_STATUS_FAILED;
}

// What would compute a node, and each refusal in a line of its own.
std::string planned(ggml_backend_device * device, const ggml_tensor * node) {
    ggml_ext_plan * plan = nullptr;
    REQUIRE_OK(ggml_ext_plan_single(device, node, &plan));
    ggml_ext_plan_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_plan_get_info(plan, &info));
    CHECK(info.n_nodes == 1);
    CHECK(std::string(info.backend) == "CPU");
    std::string text = "nothing";
    if (info.n_steps == 1) {
        ggml_ext_plan_step step{};
        step.struct_size = sizeof(step);
        REQUIRE_OK(ggml_ext_plan_get_step(plan, 0, &step));
        text = step.kernel != nullptr ? step.kernel : "native";
    }
    for (int32_t i = 0; i < info.n_refusals; ++i) {
        ggml_ext_plan_refusal refusal{};
        refusal.struct_size = sizeof(refusal);
        REQUIRE_OK(ggml_ext_plan_get_refusal(plan, i, &refusal));
        text += std::string("\n") + refusal.kernel + ": " + refusal.reason;
    }
    ggml_ext_plan_free(plan);
    return text;
}

ggml_ext_kernel_desc answering(const char * name, int priority, int32_t (*supports)(const ggml_ext_node *, void *)) {
    ggml_ext_kernel_desc desc = swish_kernel(nullptr, name);
    desc.priority             = priority;
    desc.supports             = supports;
    return desc;
}

ggml_ext_plan_step first_step_of(ggml_backend * backend, const std::string & kernel) {
    ggml_ext_plan * plan = nullptr;
    REQUIRE_OK(ggml_ext_plan_copy(backend, 0, &plan));
    ggml_ext_plan_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_plan_get_info(plan, &info));
    ggml_ext_plan_step step{};
    bool               found = false;
    for (int32_t i = 0; i < info.n_steps && !found; ++i) {
        step.struct_size = sizeof(step);
        REQUIRE_OK(ggml_ext_plan_get_step(plan, i, &step));
        found = step.kernel != nullptr && kernel == step.kernel;
    }
    REQUIRE(found);
    ggml_ext_plan_free(plan);
    return step;
}

} // namespace

TEST_CASE("JAVA-7: the name of what computes a tensor") {
    registration op;
    attached_cpu();
    REQUIRE_OK(register_swish(op));
    bench         b;
    ggml_tensor * x = b.input({4});
    ggml_tensor * s = swish(b, x, 1.0f);
    CHECK(std::string(ggml_ext_op_name(x)) == "NONE");
    CHECK(std::string(ggml_ext_op_name(b.g.base.ggml_add(b.ctx, x, s))) == "ADD");
    CHECK(std::string(ggml_ext_op_name(s)) == "test.swish.v1");
    REQUIRE_OK(ggml_ext_unregister(op.handle));
    op.handle = nullptr;
    CHECK(std::string(ggml_ext_op_name(s)) == "test.swish.v1"); // the node stays what it is
    CHECK(ggml_ext_op_name(nullptr) == nullptr);
}

TEST_CASE("JAVA-7: which kernel a node would get, and why not the others, without computing it") {
    registration op, refusing, failing, off, last;
    attached_cpu();
    REQUIRE_OK(register_swish(op));
    bench         b;
    ggml_tensor * x = b.input({4});
    ggml_tensor * s = swish(b, x, 1.0f);
    CHECK(planned(stock().cpu, s) == "nothing");
    CHECK(planned(stock().cpu, b.g.base.ggml_add(b.ctx, x, x)) == "native");

    auto desc = answering("test.refusing", 3, refuses_all);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &refusing.handle));
    desc = answering("test.failing", 2, fails);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &failing.handle));
    desc = answering("test.off", 1, supports_all);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &off.handle));
    REQUIRE_OK(ggml_ext_set_enabled(off.handle, false));
    const std::string refusals = "\ntest.refusing: does not support it: only on Sundays\ntest.failing: supports failed (FAILED): lost its table"
                                 "\ntest.off: switched off";
    CHECK(planned(stock().cpu, s) == "nothing" + refusals);
    desc = answering("test.last", 0, supports_all);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &last.handle));
    CHECK(planned(stock().cpu, s) == "test.last" + refusals);

    ggml_ext_plan * plan = nullptr;
    CHECK(ggml_ext_plan_single(nullptr, s, &plan) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_plan_single(stock().cpu, nullptr, &plan) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_plan_single(stock().cpu, s, nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(plan == nullptr);
}

TEST_CASE("KERNEL-2: a kernel that asks what its own node would get hears of the device's own") {
    registration add;
    attached_cpu();
    static std::string   heard;
    ggml_ext_kernel_desc desc = answering("test.asks", 0, [](const ggml_ext_node * node, void *) -> int32_t {
        heard = planned(stock().cpu, node->dst->tensor);
        return 1;
    });
    desc.op                   = "ADD";
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &add.handle));
    bench         b;
    ggml_tensor * x = b.input({4});
    CHECK(planned(stock().cpu, b.g.base.ggml_add(b.ctx, x, x)) == "test.asks");
    CHECK(heard == "native");
    desc           = answering("test.asks.2", 1, supports_all);
    desc.op        = "ADD";
    desc.preferred = prefers_native;
    registration other;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &other.handle));
    CHECK(planned(stock().cpu, b.g.base.ggml_add(b.ctx, x, x)) == "test.asks\ntest.asks.2: prefers the native kernel");
}

TEST_CASE("JAVA-7: executions that were timed are counted apart from those that were not") {
    registration op, kernel;
    attached_cpu();
    REQUIRE_OK(register_swish(op));
    const auto desc = swish_kernel(nullptr);
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
    {
        bench         b;
        ggml_tensor * y = swish(b, b.input({4096}), 1.0f);
        b.expand(b.g.base.ggml_add(b.ctx, y, y));
        b.allocate();
        for (int i = 0; i < 5; ++i) {
            ggml_ext_set_profiling(i == 1 || i == 2);
            REQUIRE(b.compute() == 0);
        }
        ggml_ext_set_profiling(false);
        ggml_ext_kernel_stats stats{};
        stats.struct_size = sizeof(stats);
        REQUIRE_OK(ggml_ext_get_kernel_stats(kernel.handle, &stats));
        CHECK(stats.n_executed == 5);
        CHECK(stats.n_timed == 2);
        CHECK(stats.time_ns > 0);
        const ggml_ext_plan_step step = first_step_of(b.backend, "test.swish.cpu");
        CHECK(step.n_executed == 5);
        CHECK(step.n_timed == 2);
        CHECK(step.time_ns == stats.time_ns);
    }
}
