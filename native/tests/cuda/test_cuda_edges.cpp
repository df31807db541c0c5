// CAP-1: what orders the nodes of a recorded graph, on the fake driver.

#include "core/scale_add.h"
#include "cuda/fixture.h"
#include "cuda/graph_edges.h"

#include <algorithm>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

const cuda::driver & the_driver() {
    one_cuda();
    static const std::shared_ptr<const cuda::driver> instance = cuda::load_driver();
    cuCtxSetCurrent([] {
        CUcontext context = nullptr;
        cuDevicePrimaryCtxRetain(&context, 3);
        return context;
    }());
    return *instance;
}

// Two streams that are captured into one graph.
struct capture {
    CUstream first = nullptr, second = nullptr;
    CUevent  event = nullptr;
    CUgraph  graph = nullptr;

    capture() {
        const cuda::driver & cu = the_driver();
        cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING);
        cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING);
        cu.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
        REQUIRE(cuStreamBeginCapture_v2(first, CU_STREAM_CAPTURE_MODE_RELAXED) == 0);
    }
    ~capture() {
        const cuda::driver & cu = the_driver();
        cu.cuGraphDestroy(graph);
        cu.cuEventDestroy(event);
        cu.cuStreamDestroy(first);
        cu.cuStreamDestroy(second);
    }
    void launch(CUstream stream, bool waits) {
        REQUIRE(fake_cuda_launch(stream, [](void *) {}, nullptr, [](void *) {}, waits) == 0);
    }
    void wait(CUstream waiting, CUstream other) {
        REQUIRE(cuEventRecord(event, other) == 0);
        REQUIRE(cuStreamWaitEvent(waiting, event, 0) == 0);
    }
    void end() { REQUIRE(cuStreamEndCapture(first, &graph) == 0); }

    // "0-1" an edge, "0=1" a programmatic one, by the places of the nodes
    std::vector<std::string> edges() const {
        CUgraphNode              nodes[16], from[32], to[32];
        CUgraphEdgeData          data[32];
        size_t                   n_nodes = 16, n = 32;
        std::vector<std::string> all;
        REQUIRE(cuGraphGetNodes(graph, nodes, &n_nodes) == 0);
        REQUIRE(cuGraphGetEdges_v2(graph, from, to, data, &n) == 0);
        const auto place = [&](CUgraphNode node) { return std::to_string(std::find(nodes, nodes + n_nodes, node) - nodes); };
        for (size_t i = 0; i < n; ++i) {
            all.push_back(place(from[i]) + (data[i].type == 1 ? "=" : "-") + place(to[i]));
        }
        return all;
    }
};

using edges = std::vector<std::string>;

// 0 on the first stream, 1 on the second, 2 and 3 on the first, and so on: as a plan's steps between its native ranges
void record_in_turn(capture & c, bool ours_waits) {
    c.launch(c.first, true);
    c.wait(c.second, c.first);
    c.launch(c.second, ours_waits);
    c.wait(c.first, c.second);
    c.launch(c.first, true);
    c.launch(c.first, false);
    c.wait(c.second, c.first);
    c.launch(c.second, ours_waits);
    c.wait(c.first, c.second);
    c.end();
}

} // namespace

TEST_CASE("CAP-1: of a recorded plan's edges those that others imply go: its nodes follow one another") {
    registration op, kernel;
    cuda_swish   swish;
    REQUIRE_OK(register_swish(op));
    register_cuda_swish(kernel, one_cuda(), swish, GGML_EXT_KERNEL_CAPTURE_SAFE);
    for (const bool waits : {false, true}) {
        CAPTURE(waits);
        swish.waits = waits;
        cuda_session        s(one_cuda());
        cuda_graph::options o;
        o.n_ours = 3;
        cuda_graph graph(o);
        s.allocate(graph);
        for (int i = 0; i < 5; ++i) {
            s.run(graph, i);
        }
        CHECK(stats_of(s.backend).n_replayed == 4);
        const fake_cuda_graph g = fake_cuda_instantiated();
        CHECK(g.n_nodes == 7); // native and ours in turn, native last
        CHECK(g.n_edges == 6);
        CHECK(g.n_programmatic == (waits ? 6 : 3)); // those that lead to ours are so only where its launch says that it waits
    }
}

TEST_CASE("CAP-1: edges that stay keep their kinds") {
    capture waiting;
    record_in_turn(waiting, true);
    CHECK(waiting.edges() == edges{"0=1", "0=2", "1=2", "2-3", "1=4", "3=4"});
    REQUIRE_OK(cuda::remove_implied_edges(the_driver(), waiting.graph));
    CHECK(waiting.edges() == edges{"0=1", "1=2", "2-3", "3=4"});

    capture others;
    record_in_turn(others, false);
    REQUIRE_OK(cuda::remove_implied_edges(the_driver(), others.graph));
    CHECK(others.edges() == edges{"0-1", "1=2", "2-3", "3-4"});
}

TEST_CASE("CAP-1: a kernel that uses a stream beside the layer's: the edges of fork and join stay") {
    capture c;
    c.launch(c.first, false);
    c.wait(c.second, c.first);
    c.launch(c.second, false);
    c.launch(c.second, false);
    c.launch(c.first, true);
    c.wait(c.first, c.second);
    c.launch(c.first, true);
    c.end();
    const edges all = c.edges();
    CHECK(all == edges{"0-1", "1-2", "0=3", "2=4", "3=4"});
    REQUIRE_OK(cuda::remove_implied_edges(the_driver(), c.graph));
    CHECK(c.edges() == all);
}

TEST_CASE("CAP-1: with a driver that does not say what kinds of edges there are, a recording stays as it is") {
    capture c;
    record_in_turn(c, true);
    const edges all        = c.edges();
    const auto  old_driver = std::const_pointer_cast<cuda::driver>(cuda::load_driver());
    SUBCASE("cuGraphGetEdges_v2") {
        old_driver->cuGraphGetEdges = nullptr;
    }
    SUBCASE("cuGraphRemoveDependencies_v2") {
        old_driver->cuGraphRemoveDependencies = nullptr;
    }
    REQUIRE_OK(cuda::remove_implied_edges(*old_driver, c.graph));
    CHECK(c.edges() == all);
}
