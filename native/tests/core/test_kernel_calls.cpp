// When kernels are called, and what becomes of answers that cannot be met.

#include "core/sequence_rule.h"

#include <algorithm>
#include <climits>
#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr int32_t I8 = 24;

int32_t yes(const ggml_ext_node *, void *) {
    return 1;
}

int do_nothing(const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) {
    return GGML_EXT_STATUS_SUCCESS;
}

ggml_ext_kernel_desc kernel(const char * name, const char * op) {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.supports    = yes;
    desc.run         = do_nothing;
    return desc;
}

std::string last_error() {
    return ggml_ext_last_error();
}

bool contains(const std::string & text, const char * part) {
    return text.find(part) != std::string::npos;
}

// F32 times I8, which no CPU computes
ggml_tensor * odd_product(bench & b) {
    ggml_tensor * x = b.g.ggml_new_tensor_1d(b.ctx, I8, 8);
    b.g.base.ggml_set_input(x);
    ggml_tensor * y = b.g.base.ggml_mul_mat(b.ctx, b.input({8, 4}), x);
    REQUIRE(!ggml_ext_dev_supports_native_op(stock().cpu, y));
    return y;
}

} // namespace

TEST_CASE("KERNEL-2: supports that asks ggml about its own node gets the native answer, in planning too") {
    attached_cpu();
    static int runs = 0;
    auto       desc = kernel("test.odd_product", "MUL_MAT");
    desc.supports   = [](const ggml_ext_node * node, void *) -> int32_t {
        return stock().base.ggml_backend_dev_supports_op(stock().cpu, node->dst->tensor) ? 0 : 1;
    };
    desc.run = [](const ggml_ext_exec_params *, int32_t, int32_t ith, int32_t, void *) -> int {
        if (ith == 0) {
            ++runs;
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    bench         b;
    ggml_tensor * y = odd_product(b);
    CHECK(b.g.base.ggml_backend_dev_supports_op(stock().cpu, y));
    b.expand(y);
    b.allocate();
    CHECK(b.compute() == 0);
    CHECK(runs > 0);
}

TEST_CASE("OP-3: an operation that only a kernel can do fails the compute where no kernel is left, and does not end the process") {
    attached_cpu();
    const auto   desc = kernel("test.odd_product", "MUL_MAT");
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    bench b;
    b.expand(b.g.ggml_scale(b.ctx, odd_product(b), 2.0f));
    b.allocate();
    REQUIRE_OK(ggml_ext_set_enabled(r.handle, false));
    CHECK(b.compute() == 0); // what is planned keeps its kernels
    b.g.ggml_backend_sched_set_eval_callback(b.sched, [](ggml_tensor *, bool, void *) { return true; }, nullptr);
    CHECK(b.compute() == -1);
    CHECK_MESSAGE(contains(last_error(), "MUL_MAT; test.odd_product switched off"), last_error());
}

TEST_CASE("KERNEL-2: while answers are held a kernel that takes its word back fails the compute, and does not end the process") {
    attached_cpu();
    static int asked;
    auto       desc = kernel("test.odd_product", "MUL_MAT");
    desc.supports   = [](const ggml_ext_node *, void *) -> int32_t {
        ggml_ext_set_error("no longer");
        return asked++ == 0 ? 1 : 0;
    };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    const auto supported = [](const ggml_tensor * node) { return stock().base.ggml_backend_dev_supports_op(stock().cpu, node); };
    bench      b;
    asked           = 0;
    ggml_tensor * y = odd_product(b);
    b.expand(b.g.ggml_scale(b.ctx, y, 2.0f));
    ggml_ext_hold_answers(true);
    ggml_ext_hold_answers(true); // nests
    CHECK(supported(y));
    CHECK(supported(y));
    CHECK(asked == 1);
    ggml_ext_hold_answers(false);
    std::thread([&] { CHECK(!supported(y)); }).join(); // another thread asks anew
    CHECK(supported(y));
    CHECK(asked == 2);
    b.allocate();
    ggml_ext_hold_answers(false);
    CHECK(!supported(y));
    CHECK(b.compute() == -1);
    CHECK_MESSAGE(contains(last_error(), "MUL_MAT; test.odd_product does not support it: no longer"), last_error());
    ggml_ext_hold_answers(false); // one too many is harmless
    CHECK(!supported(y));
}

TEST_CASE("KERNEL-3: where a group runs singly, a failed prepare of a single kernel fails that compute; prepare may look at plans") {
    static ggml_backend * backend = nullptr;
    static bool           fail = true, looked = false;
    static int            runs = 0;
    auto                  desc = kernel("test.sqr", "SQR");
    desc.prepare               = [](const ggml_ext_prepare_params *, ggml_ext_prepared *, void *) -> int {
        ggml_ext_plan * plan = nullptr; // would wait for good if a lock were held
        looked               = ggml_ext_plan_copy(backend, 0, &plan) == GGML_EXT_STATUS_SUCCESS || looked;
        ggml_ext_plan_free(plan);
        if (fail) {
            ggml_ext_set_error("no table");
            return GGML_EXT_STATUS_FAILED;
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.run = [](const ggml_ext_exec_params *, int32_t, int32_t ith, int32_t, void *) -> int {
        if (ith == 0) {
            ++runs;
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    sequence_rule rule;
    rule.ops = {"SQR", "SCALE"};
    add(rule);
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    bench         b;
    ggml_tensor * x     = b.input({8});
    ggml_tensor * twice = b.g.base.ggml_add(b.ctx, x, x);
    ggml_tensor * y     = b.g.ggml_scale(b.ctx, b.g.ggml_sqr(b.ctx, twice), 10.0f);
    b.expand(y); // three nodes: too few for added sources, so that ggml works in place
    b.allocate();
    REQUIRE(twice->data == y->data);
    backend = b.backend;
    CHECK(b.compute() == -1);
    CHECK_MESSAGE(contains(last_error(), "kernel test.sqr: prepare failed: no table"), last_error());
    CHECK(looked);
    CHECK(runs == 0);
    CHECK(rule.runs == 0);
}

TEST_CASE("KERNEL-3: a kernel that computes on its own backend is refused, and goes on with its workspace") {
    attached_cpu();
    static ggml_cgraph * inner       = nullptr;
    static int32_t       nested      = 0;
    static bool          still_there = false;
    static std::string   message;
    auto                 outer = kernel("test.outer", "SQR");
    outer.run                  = nullptr;
    outer.prepare              = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->workspace_size = 1 << 16;
        return GGML_EXT_STATUS_SUCCESS;
    };
    outer.execute = [](const ggml_ext_exec_params * p, void *) -> int {
        std::memset(p->workspace, 1, p->workspace_size);
        nested             = stock().base.ggml_backend_graph_compute(p->backend, inner);
        message            = last_error();
        const auto * bytes = static_cast<const char *>(p->workspace);
        still_there        = std::all_of(bytes, bytes + p->workspace_size, [](char c) { return c == 1; });
        return GGML_EXT_STATUS_SUCCESS;
    };
    auto large    = kernel("test.large", "SCALE");
    large.prepare = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->workspace_size = 1 << 26;
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration a, c;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &outer, &a.handle));
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &large, &c.handle));
    bench         b(true);
    ggml_tensor * x = b.input({8});
    ggml_tensor * y = b.g.ggml_sqr(b.ctx, x);
    ggml_tensor * z = b.g.ggml_scale(b.ctx, x, 2.0f);
    inner           = b.g.base.ggml_new_graph_custom(b.ctx, 16, false);
    b.g.base.ggml_build_forward_expand(inner, z);
    b.expand(y);
    b.allocate();
    CHECK(b.compute() == 0);
    CHECK(nested == -1);
    CHECK_MESSAGE(contains(message, "does not compute on its own backend"), message);
    CHECK(still_there);
    CHECK(b.g.base.ggml_backend_graph_compute(b.backend, inner) == 0);
}

TEST_CASE("KERNEL-1: nodes that ggml leaves out, since their COMPUTE flag is not set, go to no kernel") {
    attached_cpu();
    static int runs = 0;
    auto       desc = kernel("test.whole", "SQR");
    desc.run        = nullptr;
    desc.execute    = [](const ggml_ext_exec_params *, void *) -> int {
        ++runs;
        return GGML_EXT_STATUS_FAILED;
    };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    bench         b;
    ggml_tensor * x   = b.input({8});
    ggml_tensor * sqr = b.g.ggml_sqr(b.ctx, x);
    ggml_tensor * sum = b.g.base.ggml_add(b.ctx, x, x);
    b.g.base.ggml_build_forward_expand(b.graph, sqr);
    b.expand(sum);
    sqr->flags &= ~FLAG_COMPUTE; // as ggml_build_forward_select leaves the branches that are not chosen
    b.allocate();
    b.set(x, ramp(8));
    CHECK(b.compute() == 0);
    CHECK(runs == 0);
    CHECK(b.get(sum)[1] == 2 * ramp(8)[1]);
}

TEST_CASE("KERNEL-3: answers of prepare that cannot be met fail the compute with the number, and their state is destroyed") {
    attached_cpu();
    static int32_t phases = 1;
    static int     states = 0;
    auto           desc   = kernel("test.phases", "SQR");
    desc.prepare          = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        out->n_phases = phases;
        out->state    = &states;
        ++states;
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.destroy = [](void *, void *) { --states; };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &r.handle));
    for (const int32_t n : {0, -1, INT_MAX, 65537}) {
        CAPTURE(n);
        phases = n;
        bench b;
        b.expand(b.g.ggml_sqr(b.ctx, b.input({8})));
        b.allocate();
        CHECK(b.compute() == -1);
        CHECK_MESSAGE(contains(last_error(), ("kernel test.phases: prepare failed: n_phases is " + std::to_string(n)).c_str()), last_error());
    }
    CHECK(states == 0);
}

TEST_CASE("KERNEL-3: a callback that fails without a message is named with its status, the smallest number of all too") {
    attached_cpu();
    static int32_t answer = 0;
    auto           rule   = kernel("test.rule", "SQR");
    rule.supports         = nullptr;
    rule.match            = [](const ggml_ext_graph *, int32_t, void *) -> int32_t { return answer; };
    registration r;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &rule, &r.handle));
    for (const int32_t n : {-GGML_EXT_STATUS_NO_MEMORY, INT32_MIN}) {
        CAPTURE(n);
        answer = n;
        bench b;
        b.expand(b.g.ggml_sqr(b.ctx, b.input({8})));
        b.allocate();
        CHECK(b.compute() == -1);
        const std::string expected = std::string("kernel test.rule: match failed: ") + (n == INT32_MIN ? "FAILED" : "NO_MEMORY");
        CHECK_MESSAGE(last_error() == expected, last_error());
    }
}

TEST_CASE("KERNEL-3: a failure of prepare or match fails one compute; the next one of the same allocation asks again and computes") {
    attached_cpu();
    static bool fail_prepare = false, fail_match = false;
    static int  states = 0, runs = 0;
    auto        desc = kernel("test.sqr", "SQR");
    desc.prepare     = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
        if (fail_prepare) {
            return GGML_EXT_STATUS_NO_MEMORY;
        }
        out->state          = &states;
        out->workspace_size = 1 << 20;
        out->n_phases       = 2;
        ++states;
        return GGML_EXT_STATUS_SUCCESS;
    };
    desc.destroy = [](void *, void *) { --states; };
    desc.run     = [](const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t, void *) -> int {
        if (ith == 0 && phase == 1) {
            ++runs;
            std::memset(p->workspace, 1, p->workspace_size);
            const ggml_ext_node & node = *p->nodes[0];
            for (size_t i = 0; i < node.dst->nbytes / sizeof(float); ++i) {
                const float v                           = static_cast<const float *>(node.src[0]->data)[i];
                static_cast<float *>(node.dst->data)[i] = v * v + 100;
            }
        }
        return p->state == &states ? GGML_EXT_STATUS_SUCCESS : GGML_EXT_STATUS_FAILED;
    };
    auto rule     = kernel("test.rule", "SQR");
    rule.supports = nullptr;
    rule.match    = [](const ggml_ext_graph *, int32_t, void *) -> int32_t { return fail_match ? -GGML_EXT_STATUS_FAILED : 0; };
    registration single, group;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &single.handle));
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &rule, &group.handle));
    for (const bool in_prepare : {true, false}) {
        for (const bool direct : {false, true}) {
            CAPTURE(in_prepare);
            CAPTURE(direct);
            fail_prepare = in_prepare;
            fail_match   = !in_prepare;
            if (direct && fail_match) {
                continue; // no rule is asked there
            }
            bench         b(direct);
            ggml_tensor * x = b.input({8});
            ggml_tensor * y = b.g.base.ggml_add(b.ctx, b.g.ggml_sqr(b.ctx, b.g.base.ggml_add(b.ctx, x, x)), x);
            y               = b.g.base.ggml_add(b.ctx, y, x);
            b.expand(y);
            b.allocate();
            b.set(x, std::vector<float>(8, 3.0f));
            for (int repeat = 0; repeat < 2; ++repeat) { // as long as it fails, the message is there
                CHECK(b.compute() == -1);
                CHECK_MESSAGE(contains(last_error(), in_prepare ? "test.sqr: prepare failed: NO_MEMORY" : "test.rule: match failed: FAILED"), last_error());
                if (!in_prepare) {
                    break;
                }
            }
            fail_prepare = fail_match = false;
            runs                      = 0;
            REQUIRE_MESSAGE(b.compute() == 0, last_error());
            CHECK(b.get(y)[7] == 36 + 100 + 3 + 3);
            REQUIRE(b.compute() == 0);
            CHECK(runs == 2);
            CHECK(states == 1);
        }
        CHECK(states == 0);
    }
}
