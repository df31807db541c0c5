// CAP-2: an equal plan takes over the recording of one that has gone.

#include "cuda/fixture.h"

#include <deque>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

struct registered {
    registration op, kernel;
    cuda_swish   swish;

    explicit registered(uint32_t flags, size_t workspace = 0) {
        swish.workspace = workspace;
        REQUIRE_OK(register_swish(op));
        register_cuda_swish(kernel, one_cuda(), swish, flags);
    }
};

// One scheduler, in which graphs are built anew. Old ones stay, so that no tensor is where an earlier one was.
struct rebuilding {
    cuda_session           session{one_cuda()};
    std::deque<cuda_graph> graphs;

    // builds a graph and computes it so often; returns how many recordings were launched
    int run(const cuda_graph::options & o, int n) {
        const cuda_graph & graph = graphs.emplace_back(o);
        session.allocate(graph);
        const driver_calls launched("cuGraphLaunch");
        for (int i = 0; i < n; ++i) {
            session.run(graph, i);
        }
        return launched.count();
    }
};

// One graph whose plan ends whenever the graph is changed.
struct replanned {
    cuda_session session{one_cuda()};
    cuda_graph   graph{{}};

    // plan number i, computed so often; returns how many recordings were launched
    int run(int i, int n) {
        graph.scale = 1.0f + 0.125f * static_cast<float>(i);
        std::memcpy(graph.mid->op_params, &graph.scale, sizeof(float));
        session.allocate(graph);
        const driver_calls launched("cuGraphLaunch");
        for (int k = 0; k < n; ++k) {
            session.run(graph, k);
        }
        return launched.count();
    }
};

} // namespace

TEST_CASE("CAP-2: an equal plan, built anew, replays at its first execution") {
    registered r(REUSABLE);
    rebuilding s;
    CHECK(s.run({}, 3) == 2);
    const driver_calls recorded("cuStreamBeginCapture");
    for (int i = 0; i < 5; ++i) {
        CHECK(s.run({}, 3) == 3);
    }
    CHECK(recorded.count() == 0);
    CHECK(r.swish.calls == 2);
}

TEST_CASE("CAP-2: without the flag an equal plan warms up and records anew") {
    registered r(SAFE);
    rebuilding s;
    CHECK(s.run({}, 3) == 2);
    CHECK(s.run({}, 3) == 2);
    CHECK(r.swish.calls == 4);
}

TEST_CASE("CAP-2: a plan that differs in one field does not replay the other's recording") {
    registered          r(REUSABLE);
    cuda_graph::options other;
    SUBCASE("shape") { other.ne0 = 8; }
    SUBCASE("rows") { other.ne1 = 2; }
    SUBCASE("parameter of a native node") { other.scale = 3.0f; }
    SUBCASE("attribute of ours") { other.beta = 0.75f; }
    SUBCASE("number of steps") { other.n_ours = 2; }
    SUBCASE("an output flag") { other.mid_is_output = true; }
    CAPTURE(other.ne0);
    rebuilding s;
    CHECK(s.run({}, 2) == 1);
    CHECK(s.run(other, 1) == 0);
    CHECK(s.run({}, 1) == 1); // the first is still there
}

TEST_CASE("CAP-2: nor one with other addresses or another kernel") {
    registered r(REUSABLE);
    rebuilding s;
    CHECK(s.run({}, 2) == 1);
    SUBCASE("the addresses of another scheduler") {
        cuda_graph graph({});
        auto *     buffer = stock().ggml_backend_alloc_ctx_tensors(graph.ctx, s.session.backend);
        graph.set_input(1);
        const driver_calls launched("cuGraphLaunch");
        REQUIRE(stock().base.ggml_backend_graph_compute(s.session.backend, graph.graph) == GGML_COMPUTE_SUCCESS);
        graph.check(1);
        CHECK(launched.count() == 0);
        stock().base.ggml_backend_buffer_free(buffer);
    }
    SUBCASE("a kernel that comes first") {
        registration         better;
        cuda_swish           swish;
        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.swish.better";
        desc.op          = "test.swish.v1";
        desc.priority    = 1;
        desc.user_data   = &swish;
        desc.supports    = supports_f32;
        desc.execute     = execute_cuda_swish;
        REQUIRE_OK(ggml_ext_register_kernel_ex(one_cuda(), &desc, REUSABLE, &better.handle));
        CHECK(s.run({}, 1) == 0);
        CHECK(swish.calls == 1);
        s.session.close();
    }
}

TEST_CASE("CAP-2: the sixteen latest plans are kept, the oldest goes first") {
    registered r(REUSABLE);
    replanned  s;
    for (int i = 0; i < 17; ++i) {
        CHECK(s.run(i, 2) == 1);
    }
    s.run(99, 1); // retires the last one
    CHECK(s.run(1, 1) == 1);
    CHECK(s.run(16, 1) == 1);
    CHECK(s.run(0, 1) == 0);
}

TEST_CASE("CAP-2: their workspaces are 256 MiB at most, and a larger plan's is not kept") {
    registered r(REUSABLE);
    replanned  s;
    const auto run = [&](int i, size_t mib, int n) {
        r.swish.workspace = mib << 20;
        return s.run(i, n);
    };
    run(99, 300, 1); // the workspace is as large as it will be
    CHECK(run(0, 300, 2) == 1);
    CHECK(run(1, 100, 2) == 1);
    CHECK(run(0, 300, 1) == 0); // was too large
    CHECK(run(2, 100, 2) == 1);
    CHECK(run(3, 100, 2) == 1);
    run(99, 100, 1);
    CHECK(run(2, 100, 1) == 1);
    CHECK(run(3, 100, 1) == 1);
    CHECK(run(1, 100, 1) == 0); // was the oldest of three
}

TEST_CASE("CAP-2: one recording serves several plans, and outlives the first that ends") {
    registered r(REUSABLE);
    rebuilding s;
    CHECK(s.run({}, 2) == 1);
    CHECK(s.run({}, 1) == 1);
    cuda_graph & second = s.graphs.back();
    second.scale        = 5.0f; // ends the second plan; the first is there
    std::memcpy(second.mid->op_params, &second.scale, sizeof(float));
    s.session.allocate(second);
    s.session.run(second, 1);
    CHECK(s.run({}, 1) == 1);
}
