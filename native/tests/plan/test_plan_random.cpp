// FUSE-3 on random graphs: whatever delays are accepted, the graph computes the same bits.

#include "differential/random_graph.h"
#include "plan/delay.h"
#include "support/cpu_backend.h"
#include "support/graph_fixture.h"

#include <cstring>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr uint64_t FIRST_SEED = 20261129;
constexpr int      N_GRAPHS   = 2000;
constexpr int      N_MOVES    = 24; // tried in each graph

// Computes with memory of its own for each tensor: what all storage holds at the end, in the order of the tensors' creation
std::string compute(const random_graph & g, const cpu_backend & cpu, const std::vector<ggml_tensor *> & owners) {
    ggml_backend_buffer * buffer = stock().ggml_backend_alloc_ctx_tensors(g.ctx(), cpu.get());
    REQUIRE(buffer != nullptr);
    g.fill();
    REQUIRE(stock().base.ggml_backend_graph_compute(cpu.get(), g.graph()) == GGML_COMPUTE_SUCCESS);
    std::string all;
    for (const ggml_tensor * t : owners) {
        all += bytes_of(t);
    }
    for (const ggml_tensor * t : g.observed()) {
        all += bytes_of(t);
    }
    stock().base.ggml_backend_buffer_free(buffer);
    return all;
}

// the nodes that own storage, in graph order
std::vector<ggml_tensor *> owners_of(const random_graph & g) {
    std::vector<ggml_tensor *> owners;
    for (int i = 0; i < g.graph()->n_nodes; ++i) {
        if (!g.graph()->nodes[i]->view_src) {
            owners.push_back(g.graph()->nodes[i]);
        }
    }
    return owners;
}

struct move {
    int first, count, before;

    static move random(std::mt19937_64 & r, int n_nodes) {
        const int first  = static_cast<int>(r() % n_nodes);
        const int count  = 1 + static_cast<int>(r() % 4);
        const int before = first + count + static_cast<int>(r() % 12);
        return {first, count, before};
    }
};

} // namespace

TEST_CASE("FUSE-3: after any accepted delays a random graph computes the same bits") {
    const cpu_backend cpu;
    int               n_accepted = 0, n_refused = 0, n_nodes = 0;
    for (int i = 0; i < N_GRAPHS; ++i) {
        random_graph_params params;
        params.seed         = FIRST_SEED + i;
        params.n_nodes      = 8 + static_cast<int>(params.seed % 64);
        params.hidden_views = i % 2;
        const random_graph unmoved(params, cpu.get());
        const random_graph moved(params, cpu.get());
        CAPTURE(unmoved.describe());
        const auto unmoved_owners = owners_of(unmoved), moved_owners = owners_of(moved);

        std::mt19937_64   random(params.seed);
        plan::graph_index index(op_table(), moved.graph());
        int               n_moves = 0;
        for (int n = 0; n < N_MOVES; ++n) {
            const move m = move::random(random, index.n_nodes());
            plan::delay(index, m.first, m.count, m.before).empty() ? ++n_moves : ++n_refused;
        }
        for (int n = 0; n < index.n_nodes(); ++n) {
            REQUIRE(index.find(index.node(n)) == n);
        }
        n_accepted += n_moves;
        n_nodes += index.n_nodes();
        if (n_moves > 0) {
            const bool same = compute(unmoved, cpu, unmoved_owners) == compute(moved, cpu, moved_owners);
            REQUIRE(same);
        }
    }
    MESSAGE("seeds ", FIRST_SEED, " to ", FIRST_SEED + N_GRAPHS - 1, ": ", n_nodes, " nodes, ", n_accepted, " delays accepted, ",
            n_refused, " refused");
    CHECK(n_accepted > N_GRAPHS);
    CHECK(n_refused > N_GRAPHS);
}

TEST_CASE("FUSE-3: delays that are refused for storage alone would change results") {
    const cpu_backend cpu;
    int               n_forced = 0, n_changed = 0;
    for (int i = 0; i < N_GRAPHS / 4; ++i) {
        random_graph_params params;
        params.seed    = FIRST_SEED + i;
        params.n_nodes = 40;
        const random_graph unmoved(params, cpu.get());
        const random_graph forced(params, cpu.get());
        const auto         unmoved_owners = owners_of(unmoved), forced_owners = owners_of(forced);

        std::mt19937_64   random(params.seed);
        plan::graph_index index(op_table(), forced.graph());
        std::string       reason;
        for (int n = 0; n < N_MOVES && reason.find("storage") == std::string::npos; ++n) {
            const move m = move::random(random, index.n_nodes());
            reason       = plan::delay(index, m.first, m.count, m.before);
            if (reason.find("storage") != std::string::npos) {
                index.move(m.first, m.count, m.before);
                ++n_forced;
            }
        }
        n_changed += compute(unmoved, cpu, unmoved_owners) != compute(forced, cpu, forced_owners);
    }
    MESSAGE(n_forced, " forced, ", n_changed, " changed the result");
    CHECK(n_changed > n_forced / 4);
    CHECK(n_changed > 0);
}
