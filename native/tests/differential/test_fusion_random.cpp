// FUSE-1 to FUSE-5 on random graphs with random kernels: whatever is fused, delayed or overridden on two devices, the bytes are those
// of ggml's own scheduler without the layer.
//
//   GGML_EXT_TEST_GRAPHS=5000     how many graphs
//   GGML_EXT_TEST_SEED=17         the first seed; alone: this graph only, as a failure prints it

#include "differential/random_rules.h"
#include "differential/random_run.h"
#include "support/second_device.h"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr uint64_t FIRST_SEED = 1;
constexpr int      N_GRAPHS   = 2000;

struct counts {
    rule_counts rules;
    uint64_t    n_nodes = 0, n_splits = 0, n_computed = 0, n_cpu_groups = 0, n_second_groups = 0, n_singly = 0, n_late = 0;

    void add(const rule_counts & r) {
        rules.n_matches += r.n_matches;
        rules.n_refused += r.n_refused;
        rules.n_failed += r.n_failed;
        rules.n_delays += r.n_delays;
        rules.n_delays_refused += r.n_delays_refused;
    }

    void add(const scheduled & run) {
        for (ggml_backend * backend : run.backends()) {
            ggml_ext_backend_stats s{};
            s.struct_size = sizeof(s);
            REQUIRE(ggml_ext_get_backend_stats(backend, &s) == GGML_EXT_STATUS_SUCCESS);
            (backend == run.backends().back() ? n_cpu_groups : n_second_groups) += s.n_groups;
            n_singly += s.n_singly;
            n_late += s.n_planned_late;
        }
    }
};

random_graph make_graph(uint64_t seed, uint64_t salt, ggml_backend * backend) {
    random_graph_params params;
    params.seed = seed * 16 + salt;
    std::mt19937_64 random(params.seed);
    // 4 to 400, small ones more often
    params.n_nodes = random() % 4 == 0 ? 4 + static_cast<int>(random() % 397) : 4 + static_cast<int>(random() % 60);
    return random_graph(params, backend);
}

// One seed: graphs, devices, kernels and what is done with them.
class scenario {
public:
    scenario(uint64_t seed, ggml_backend * worker)
        : seed_(seed), random_(seed ^ 0xd1ff), worker_(worker), a_(make_graph(seed, 0, worker)), b_(make_graph(seed, 1, worker)),
          state_a_(a_), state_b_(b_), two_(random_() % 3 != 0) {}

    void run(counts & total) {
        set_second_device_choice(random_() % 4 == 0 ? 0 : random_());
        random_rules cpu_rules(seed_, stock().cpu, worker_);
        random_rules second_rules(seed_, second_device(), worker_);

        run_params params;
        params.seed     = seed_;
        params.two      = two_;
        params.extended = false;
        {
            // with the kernels registered: what a device supports decides how the graph is split
            scheduled stock_run(params);
            expected_a_ = reference(stock_run, a_, state_a_);
            expected_b_ = reference(stock_run, b_, state_b_);
        }
        params.extended  = true;
        params.n_threads = random_() % 200 == 0 ? 2 : 1; // waiting threads without a core of their own are very slow
        scheduled run(params);
        compute_all(run);
        total.add(run);
        total.add(cpu_rules.counts());
        total.add(second_rules.counts());
        total.n_nodes += static_cast<uint64_t>(a_.graph()->n_nodes);
        total.n_splits += static_cast<uint64_t>(n_splits_);
        total.n_computed += static_cast<uint64_t>(n_computed_);
    }

private:
    static std::string reference(scheduled & run, const random_graph & g, const graph_state & state) {
        run.allocate(g);
        const std::string bytes = run.compute(g);
        run.reset();
        state.restore();
        return bytes;
    }

    void compute_all(scheduled & run) {
        if (random_() % 8 == 0) {
            run.reserve(a_);
            state_a_.restore();
        }
        run.allocate(a_);
        n_splits_ = run.n_splits();
        check(run, a_, expected_a_, "first compute");
        check(run, a_, expected_a_, "second compute");
        if (random_() % 4 == 0) {
            run.set_callback(true);
            check(run, a_, expected_a_, "with an evaluation callback");
            run.set_callback(false);
            check(run, a_, expected_a_, "after the evaluation callback");
        }
        if (!two_ && random_() % 2 == 0) {
            // the same graph with its old addresses; with several splits ggml itself needs a graph made anew
            run.allocate(a_);
            check(run, a_, expected_a_, "allocated again with old addresses");
        }
        if (random_() % 2 == 0) {
            run.reset();
            state_a_.restore();
            run.allocate(b_);
            check(run, b_, expected_b_, "another graph");
            run.reset();
            state_b_.restore();
            run.allocate(a_);
            check(run, a_, expected_a_, "the first graph after another");
        }
        if (random_() % 4 == 0) {
            run.reset();
            state_a_.restore();
            run.set_callback(true);
            run.allocate(a_);
            check(run, a_, expected_a_, "allocated and computed with an evaluation callback");
            run.set_callback(false);
        }
    }

    void check(scheduled & run, const random_graph & g, const std::string & expected, const char * when) {
        const std::string bytes = run.compute(g);
        ++n_computed_;
        if (bytes == expected) {
            return;
        }
        std::string plans;
        for (ggml_backend * backend : run.backends()) {
            plans += describe_plans(backend);
        }
        FAIL("GGML_EXT_TEST_SEED=", seed_, ", ", std::string(when), ": ", g.describe(), ", ", run.n_splits(), " splits\n", plans);
    }

    const uint64_t     seed_;
    std::mt19937_64    random_;
    ggml_backend *     worker_;
    const random_graph a_, b_;
    const graph_state  state_a_, state_b_;
    const bool         two_;
    std::string        expected_a_, expected_b_;
    int                n_splits_ = 0, n_computed_ = 0;
};

uint64_t number_from(const char * variable, uint64_t otherwise) {
    const char * text = std::getenv(variable);
    return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : otherwise;
}

} // namespace

TEST_CASE("FUSE-1 to FUSE-5: random graphs with random rules, delays and overrides compute the bits of ggml's own scheduler") {
    // Neighbours that ggml fuses by itself round differently; ggml reads this when its first CPU backend starts.
    setenv("GGML_CPU_DISABLE_FUSION", "1", 1);
    second_device();
    ggml_backend *             worker = new_native_cpu_backend(1);
    const ggml_ext_load_params load   = stock().load_params();
    REQUIRE(ggml_ext_load(&load) == GGML_EXT_STATUS_SUCCESS);
    REQUIRE(ggml_ext_attach_device(stock().cpu) == GGML_EXT_STATUS_SUCCESS);
    REQUIRE_MESSAGE(ggml_ext_attach_device(second_device()) == GGML_EXT_STATUS_SUCCESS, ggml_ext_last_error());

    const uint64_t first    = number_from("GGML_EXT_TEST_SEED", FIRST_SEED);
    const bool     one      = std::getenv("GGML_EXT_TEST_SEED") != nullptr;
    const uint64_t n_graphs = number_from("GGML_EXT_TEST_GRAPHS", one ? 1 : N_GRAPHS);
    counts         total;
    for (uint64_t seed = first; seed < first + n_graphs; ++seed) {
        try {
            scenario(seed, worker).run(total);
        } catch (const std::exception & e) {
            FAIL("GGML_EXT_TEST_SEED=", seed, ": ", std::string(e.what()));
        }
    }
    stock().base.ggml_backend_free(worker);

    MESSAGE("seeds ", first, " to ", first + n_graphs - 1, ": ", total.n_nodes, " nodes in ", total.n_splits, " splits, computed ",
            total.n_computed, " times; groups fired ", total.n_cpu_groups, " on the CPU and ", total.n_second_groups,
            " on the second device, ", total.n_singly, " ran as single operations after all, ", total.rules.n_refused,
            " matches refused; delays accepted ", total.rules.n_delays, ", refused ", total.rules.n_delays_refused, "; ", total.n_late,
            " plans made at compute");
    CHECK(total.rules.n_failed == 0);
    if (n_graphs > 1) {
        CHECK(total.n_cpu_groups + total.n_second_groups > 0);
    }
    if (n_graphs >= 100) {
        CHECK(total.n_cpu_groups > n_graphs);
        CHECK(total.n_second_groups > n_graphs);
        CHECK(total.n_singly > 0);
        CHECK(total.rules.n_refused > n_graphs);
        CHECK(total.rules.n_delays > n_graphs);
        CHECK(total.n_splits > 2 * n_graphs);
    }
}
