// CAP-1: a plan becomes a CUDA graph, on the fake driver.

#include "core/scale_add.h"
#include "cuda/fixture.h"

#include <stdexcept>
#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// the operator and one kernel of it
struct registered {
    registration op, kernel;
    cuda_swish   swish;

    explicit registered(uint32_t flags) {
        REQUIRE_OK(register_swish(op));
        register_cuda_swish(kernel, one_cuda(), swish, flags);
    }
};

// a graph in memory of its own, computed without a scheduler; ggml gives it no id
struct direct_run {
    cuda_session          session{one_cuda()};
    cuda_graph            graph;
    ggml_backend_buffer * buffer;

    explicit direct_run(const cuda_graph::options & o = {})
        : graph(o), buffer(stock().ggml_backend_alloc_ctx_tensors(graph.ctx, session.backend)) {}
    ~direct_run() {
        session.close();
        stock().base.ggml_backend_buffer_free(buffer);
    }
    void run(int seed) {
        graph.set_input(seed);
        REQUIRE(stock().base.ggml_backend_graph_compute(session.backend, graph.graph) == GGML_COMPUTE_SUCCESS);
        graph.check(seed);
    }
};

} // namespace

TEST_CASE("CAP-1: the first execution warms up, the second records, later ones replay, with other contents each time") {
    registered          r(SAFE);
    cuda_session        s(one_cuda());
    cuda_graph::options o;
    o.n_ours = 3;
    cuda_graph graph(o);
    s.allocate(graph);
    const driver_calls recorded("cuStreamBeginCapture"), launched("cuGraphLaunch");

    s.run(graph, 1);
    CHECK(r.swish.calls == 3);
    CHECK(recorded.count() == 0);
    s.run(graph, 2);
    CHECK(r.swish.calls == 6);
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 1);
    for (int i = 0; i < 1000; ++i) {
        s.run(graph, i % 7);
    }
    CHECK(r.swish.calls == 6);
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 1001);
    CHECK(native_graph_launches(s.backend) == 0); // never both

    ggml_ext_kernel_stats stats{};
    stats.struct_size = sizeof(stats);
    REQUIRE_OK(ggml_ext_get_kernel_stats(r.kernel.handle, &stats));
    CHECK(stats.n_executed == 3 * 1002); // a replay executes the kernel too
    CHECK(stats_of(s.backend).n_recorded == 1);
    CHECK(stats_of(s.backend).n_replayed == 1001);
}

TEST_CASE("CAP-1: without a scheduler as well") {
    registered         r(SAFE);
    direct_run         d;
    const driver_calls recorded("cuStreamBeginCapture"), launched("cuGraphLaunch");
    for (int i = 0; i < 5; ++i) {
        d.run(i);
    }
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 4);
}

TEST_CASE("CAP-1: a changed address repeats the warm-up") {
    registered         r(SAFE);
    direct_run         d;
    const driver_calls recorded("cuStreamBeginCapture"), launched("cuGraphLaunch");
    d.run(1);
    d.run(2);
    d.run(3);
    CHECK(launched.count() == 2);
    // freed and allocated anew, elsewhere
    ggml_backend_buffer * elsewhere = nullptr;
    for (ggml_tensor * t : {d.graph.x, d.graph.mid, d.graph.ours, d.graph.y}) {
        t->data   = nullptr;
        t->buffer = nullptr;
    }
    elsewhere = stock().ggml_backend_alloc_ctx_tensors(d.graph.ctx, d.session.backend);
    REQUIRE(elsewhere != nullptr);
    d.run(4);
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 2);
    d.run(5);
    d.run(6);
    CHECK(recorded.count() == 2);
    CHECK(launched.count() == 4);
    d.session.close();
    stock().base.ggml_backend_buffer_free(elsewhere);
}

TEST_CASE("CAP-1: a changed parameter of a native node repeats the warm-up") {
    registered         r(SAFE);
    direct_run         d;
    const driver_calls recorded("cuStreamBeginCapture");
    d.run(1);
    d.run(2);
    d.run(3);
    d.graph.scale = -3.0f;
    std::memcpy(d.graph.mid->op_params, &d.graph.scale, sizeof(float));
    d.run(4);
    CHECK(recorded.count() == 1);
    d.run(5);
    CHECK(recorded.count() == 2);
    d.run(6);
}

TEST_CASE("CAP-1: shapes that alternate on one first node") {
    registered         r(SAFE);
    direct_run         d;
    const driver_calls recorded("cuStreamBeginCapture");
    const auto         rows = [&](int64_t n) {
        for (int i = 0; i < d.graph.graph->n_nodes; ++i) {
            d.graph.graph->nodes[i]->ne[1] = n;
        }
        d.graph.x->ne[1] = n;
    };
    for (int i = 0; i < 6; ++i) {
        rows(i % 2 == 0 ? 3 : 2);
        d.run(i);
    }
    CHECK(recorded.count() == 0); // never the same twice in a row
    d.run(7);
    d.run(8);
    CHECK(recorded.count() == 1);
}

TEST_CASE("CAP-3: a plan with one unflagged kernel runs step by step, and native ranges keep ggml's own graphs") {
    registered   r(SAFE);
    registration unflagged_op, unflagged_kernel;
    cuda_swish   unflagged;
    REQUIRE_OK(register_swish(unflagged_op, "test.swish.v2"));
    register_cuda_swish(unflagged_kernel, one_cuda(), unflagged, 0, "test.swish.unflagged", "test.swish.v2");
    cuda_session s(one_cuda());
    {
        cuda_graph    graph({});
        float         beta  = 0.5f;
        ggml_tensor * extra = nullptr;
        REQUIRE_OK(ggml_ext_op_create(graph.ctx, "test.swish.v2", 1, &graph.x, &beta, sizeof(beta), &extra));
        stock().base.ggml_set_output(extra);
        stock().base.ggml_build_forward_expand(graph.graph, extra);
        s.allocate(graph);
        const driver_calls recorded("cuStreamBeginCapture");
        for (int i = 0; i < 6; ++i) {
            s.run(graph, i);
        }
        CHECK(recorded.count() == 0);
        CHECK(r.swish.calls == 6);
        CHECK(unflagged.calls == 6);
        CHECK(native_graph_launches(s.backend) > 0);
    }
    s.close(); // before the kernels are withdrawn
}

TEST_CASE("CAP-1: a kernel that fails while its plan is recorded: the plan runs step by step from then on") {
    registered r(SAFE);
    r.swish.first = [](cuda::CUstream stream) {
        CUstreamCaptureStatus status;
        cuStreamIsCapturing(stream, &status);
        ggml_ext_set_error("not inside a capture");
        return static_cast<int>(status == CU_STREAM_CAPTURE_STATUS_NONE ? GGML_EXT_STATUS_SUCCESS : GGML_EXT_STATUS_UNSUPPORTED);
    };
    cuda_session s(one_cuda());
    cuda_graph   graph({});
    s.allocate(graph);
    const driver_calls recorded("cuStreamBeginCapture"), launched("cuGraphLaunch");
    for (int i = 0; i < 5; ++i) {
        s.run(graph, i);
    }
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 0);
    CHECK(r.swish.calls == 6); // each compute, and the attempt
}

TEST_CASE("CAP-1: a kernel that breaks the capture: native code is not called inside it") {
    registered r(SAFE);
    r.swish.first = [](cuda::CUstream stream) {
        cuStreamSynchronize(stream); // breaks a capture; the kernel does not even notice
        return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
    };
    cuda_session        s(one_cuda());
    cuda_graph::options o;
    o.n_ours = 2;
    cuda_graph graph(o);
    s.allocate(graph);
    const driver_calls launched("cuGraphLaunch");
    for (int i = 0; i < 4; ++i) {
        graph.set_input(i);
        const int32_t status = s.compute(graph);
        CHECK(std::string(fake_cuda_violations()) == "");
        if (status == GGML_COMPUTE_SUCCESS) {
            graph.check(i);
        } else {
            CHECK(i == 1); // its launch into the broken capture was refused: a failure as any other
        }
    }
    CHECK(launched.count() == 0);
}

TEST_CASE("CAP-1: what a kernel throws in spite of the rule is its failure: no capture stays open, and streams stay ordered") {
    registered r(SAFE);
    bool       also_outside = false;
    r.swish.first           = [&](cuda::CUstream stream) -> int {
        CUstreamCaptureStatus status;
        cuStreamIsCapturing(stream, &status);
        if (also_outside || status != CU_STREAM_CAPTURE_STATUS_NONE) {
            throw std::runtime_error("thrown by the kernel");
        }
        return GGML_EXT_STATUS_SUCCESS;
    };
    cuda_session        s(one_cuda());
    cuda_graph::options o;
    o.n_ours = 2;
    cuda_graph graph(o);
    s.allocate(graph);
    const driver_calls recorded("cuStreamBeginCapture"), launched("cuGraphLaunch");
    for (int i = 0; i < 4; ++i) {
        s.run(graph, i);
    }
    CHECK(recorded.count() == 1);
    CHECK(launched.count() == 0);
    also_outside = true;
    CHECK(s.compute(graph) == GGML_COMPUTE_FAILED);
    CHECK(std::string(ggml_ext_last_error()).find("test.swish.cuda: thrown by the kernel") != std::string::npos);
    also_outside = false;
    s.run(graph, 4);
}

TEST_CASE("CAP-1: where the driver refuses a step of recording, the plan runs step by step") {
    registered r(SAFE);
    for (const char * function : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphGetNodes", "cuGraphGetEdges", "cuGraphRemoveDependencies", "cuGraphInstantiateWithFlags"}) {
        CAPTURE(function);
        cuda_session s(one_cuda());
        cuda_graph   graph({});
        s.allocate(graph);
        const driver_calls launched("cuGraphLaunch");
        s.run(graph, 1);
        fake_cuda_fail_next(function, 999);
        for (int i = 2; i < 6; ++i) {
            s.run(graph, i);
        }
        CHECK(launched.count() == 0);
    }
}

TEST_CASE("CAP-1: a launch that fails is reported, not retried") {
    registered   r(SAFE);
    cuda_session s(one_cuda());
    cuda_graph   graph({});
    s.allocate(graph);
    s.run(graph, 1);
    s.run(graph, 2);
    fake_cuda_fail_next("cuGraphLaunch", 999);
    CHECK(s.compute(graph) != GGML_COMPUTE_SUCCESS);
    CHECK(std::string(ggml_ext_last_error()).find("cuGraphLaunch") != std::string::npos);
    CHECK(r.swish.calls == 2);
    s.run(graph, 3);
}

TEST_CASE("CAP-1: inside an enclosing capture the plan records itself") {
    registered r(SAFE);
    direct_run d;
    auto *     stream = native_stream(d.session.backend);
    d.run(1); // lazy things
    const driver_calls launched("cuGraphLaunch");
    CUgraph            graph = nullptr;
    CUgraphExec        exec  = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
    REQUIRE(stock().base.ggml_backend_graph_compute_async(d.session.backend, d.graph.graph) == GGML_COMPUTE_SUCCESS);
    REQUIRE(cuStreamEndCapture(stream, &graph) == 0);
    REQUIRE(cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);
    CHECK(launched.count() == 0);
    for (int i = 2; i < 5; ++i) {
        d.graph.set_input(i);
        REQUIRE(cuGraphLaunch(exec, stream) == 0);
        REQUIRE(cuStreamSynchronize(stream) == 0);
        d.graph.check(i);
    }
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    d.run(6); // and afterwards all is as before
    d.run(7);
}

TEST_CASE("CAP-1: an enclosing capture refuses a kernel that is not flagged") {
    registered r(0);
    direct_run d;
    auto *     stream = native_stream(d.session.backend);
    CUgraph    graph  = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
    CHECK(stock().base.ggml_backend_graph_compute_async(d.session.backend, d.graph.graph) != GGML_COMPUTE_SUCCESS);
    CHECK(std::string(ggml_ext_last_error()).find("test.swish.cuda") != std::string::npos);
    REQUIRE(cuStreamEndCapture(stream, &graph) == 0);
    cuGraphDestroy(graph);
    d.run(1);
}

TEST_CASE("KERNEL-4: workspace is not allocated inside an enclosing capture, and its growth repeats the warm-up") {
    registered r(SAFE);
    r.swish.workspace = 1 << 20;
    direct_run d;
    auto *     stream = native_stream(d.session.backend);
    CUgraph    graph  = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
    CHECK(stock().base.ggml_backend_graph_compute_async(d.session.backend, d.graph.graph) != GGML_COMPUTE_SUCCESS);
    CHECK(std::string(ggml_ext_last_error()).find("workspace") != std::string::npos);
    REQUIRE(cuStreamEndCapture(stream, &graph) == 0);
    cuGraphDestroy(graph);
    const driver_calls recorded("cuStreamBeginCapture");
    for (int i = 0; i < 4; ++i) {
        d.run(i);
    }
    CHECK(recorded.count() == 1);
    // another plan of the same backend needs more
    r.swish.workspace = 1 << 22;
    cuda_graph            other({});
    ggml_backend_buffer * buffer = stock().ggml_backend_alloc_ctx_tensors(other.ctx, d.session.backend);
    other.set_input(1);
    REQUIRE(stock().base.ggml_backend_graph_compute(d.session.backend, other.graph) == GGML_COMPUTE_SUCCESS);
    other.check(1);
    d.run(5);
    CHECK(recorded.count() == 1);
    d.run(6);
    CHECK(recorded.count() == 2);
    d.session.close();
    stock().base.ggml_backend_buffer_free(buffer);
}

TEST_CASE("KERNEL-4: workspace that a caller's graph has recorded stays where it is when another plan wants more") {
    constexpr size_t SMALL = 1 << 20, LARGE = 1 << 22;
    registered       r(SAFE);
    r.swish.workspace = SMALL;
    direct_run d;
    auto *     stream = native_stream(d.session.backend);
    d.run(1);
    CUgraph     graph = nullptr;
    CUgraphExec exec  = nullptr;
    REQUIRE(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
    REQUIRE(stock().base.ggml_backend_graph_compute_async(d.session.backend, d.graph.graph) == GGML_COMPUTE_SUCCESS);
    REQUIRE(cuStreamEndCapture(stream, &graph) == 0);
    REQUIRE(cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);

    r.swish.workspace = LARGE;
    cuda_graph            other({});
    ggml_backend_buffer * buffer = stock().ggml_backend_alloc_ctx_tensors(other.ctx, d.session.backend);
    other.set_input(2);
    REQUIRE(stock().base.ggml_backend_graph_compute(d.session.backend, other.graph) == GGML_COMPUTE_SUCCESS);
    other.check(2);
    CHECK(stats_of(d.session.backend).workspace_size >= SMALL + LARGE);

    d.graph.set_input(3);
    REQUIRE(cuGraphLaunch(exec, stream) == 0);
    REQUIRE(cuStreamSynchronize(stream) == 0);
    d.graph.check(3);
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    d.session.close();
    stock().base.ggml_backend_buffer_free(buffer);
}

TEST_CASE("CAP-2: closing a backend with live recordings frees all") {
    registered r(REUSABLE);
    const int  before = fake_cuda_live();
    {
        cuda_session s(one_cuda());
        cuda_graph   first({}), second({});
        for (const cuda_graph * graph : {&first, &second}) {
            s.allocate(*graph);
            s.run(*graph, 1);
            s.run(*graph, 2);
        }
        CHECK(fake_cuda_live() > before);
        second.set_input(3);
        REQUIRE(s.compute(second) == GGML_COMPUTE_SUCCESS);
    }
    CHECK(fake_cuda_live() == before);
}

TEST_CASE("CAP-1: two backends on two threads") {
    registered r(SAFE);
    const auto work = [](int seed) {
        cuda_session        s(one_cuda());
        cuda_graph::options o;
        o.n_ours = 2;
        o.ne1    = 2 + seed;
        cuda_graph graph(o);
        s.allocate(graph);
        for (int i = 0; i < 50; ++i) {
            s.run(graph, seed + i % 5);
        }
    };
    one_cuda();
    const driver_calls recorded("cuStreamBeginCapture");
    std::thread        other(work, 1);
    work(3);
    other.join();
    CHECK(recorded.count() == 2);
}
