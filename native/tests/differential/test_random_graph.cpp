// The random graphs themselves: the same for the same seed, varied, finite, and computed by ggml's own scheduler, which lets nodes
// share memory, to the same bits as with memory of its own for each tensor. So a later difference is not the graphs' fault.

#include "differential/random_graph.h"
#include "support/cpu_backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr uint64_t FIRST_SEED = 400;
constexpr int      N_GRAPHS   = 300;

random_graph make(uint64_t seed, const cpu_backend & cpu) {
    random_graph_params params;
    params.seed    = seed;
    params.n_nodes = 4 + static_cast<int>((seed * 7919) % 397);
    return random_graph(params, cpu.get());
}

std::string observed(const random_graph & g) {
    std::string all;
    for (const ggml_tensor * t : g.observed()) {
        all += bytes_of(t);
    }
    return all;
}

bool is_finite(const ggml_tensor * tensor) {
    if (tensor->type != TYPE_F32) {
        return true;
    }
    const std::string  bytes = bytes_of(tensor);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

std::string compute_apart(const random_graph & g, const cpu_backend & cpu, bool * finite = nullptr) {
    ggml_backend_buffer * buffer = stock().ggml_backend_alloc_ctx_tensors(g.ctx(), cpu.get());
    g.fill();
    REQUIRE(stock().base.ggml_backend_graph_compute(cpu.get(), g.graph()) == GGML_COMPUTE_SUCCESS);
    const std::string result = observed(g);
    if (finite) {
        *finite = std::all_of(g.observed().begin(), g.observed().end(), is_finite);
    }
    stock().base.ggml_backend_buffer_free(buffer);
    return result;
}

std::string compute_scheduled(const random_graph & g, const cpu_backend & cpu) {
    ggml_backend *       backend = cpu.get();
    ggml_backend_sched * sched   = stock().base.ggml_backend_sched_new(&backend, nullptr, 1, 4096, false, true);
    REQUIRE(stock().ggml_backend_sched_alloc_graph(sched, g.graph()));
    g.fill();
    REQUIRE(stock().ggml_backend_sched_graph_compute(sched, g.graph()) == GGML_COMPUTE_SUCCESS);
    const std::string result = observed(g);
    stock().base.ggml_backend_sched_free(sched);
    return result;
}

int count(const random_graph & g, const char * op, bool in_place) {
    int n = 0;
    for (int i = 0; i < g.graph()->n_nodes; ++i) {
        const ggml_tensor * node = g.graph()->nodes[i];
        n += std::strcmp(stock().base.ggml_op_name(node->op), op) == 0 && (node->view_src != nullptr) == in_place;
    }
    return n;
}

} // namespace

TEST_CASE("COMPAT-2: random graphs compute the same bits in ggml's scheduler and with memory of their own") {
    const cpu_backend cpu;
    int               n_nodes = 0;
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + N_GRAPHS; ++seed) {
        const random_graph a = make(seed, cpu);
        const random_graph b = make(seed, cpu);
        CAPTURE(a.describe());
        REQUIRE(a.describe() == b.describe());
        const bool same = compute_apart(a, cpu) == compute_scheduled(b, cpu);
        REQUIRE(same);
        n_nodes += a.graph()->n_nodes;
    }
    MESSAGE("seeds ", FIRST_SEED, " to ", FIRST_SEED + N_GRAPHS - 1, ": ", n_nodes, " nodes");
}

TEST_CASE("COMPAT-2: random graphs hold what is hard to fuse and to move, and stay finite") {
    const cpu_backend cpu;
    int               n_views = 0, n_in_place = 0, n_copies = 0, n_conversions = 0, n_rows = 0, n_shared = 0;
    for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + 50; ++seed) {
        const random_graph g = make(seed, cpu);
        n_views += count(g, "VIEW", true) + count(g, "RESHAPE", true);
        n_in_place += count(g, "SCALE", true) + count(g, "ADD", true) + count(g, "MUL", true) + count(g, "RMS_NORM", true);
        n_copies += count(g, "CPY", true);
        n_conversions += count(g, "CPY", false);
        n_rows += count(g, "SET_ROWS", true);
        for (int i = 0; i < g.graph()->n_nodes; ++i) {
            n_shared += abi::graph_use_count(g.graph(), g.graph()->nodes[i]) > 1;
        }
        bool finite = false;
        compute_apart(g, cpu, &finite);
        CHECK_MESSAGE(finite, g.describe());
    }
    MESSAGE(n_views, " views, ", n_in_place, " in place, ", n_copies, " copies, ", n_conversions, " conversions, ", n_rows,
            " row writes, ", n_shared, " nodes with several consumers");
    for (int n : {n_views, n_in_place, n_copies, n_conversions, n_rows, n_shared}) {
        CHECK(n > 20);
    }
}
