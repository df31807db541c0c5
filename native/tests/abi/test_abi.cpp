// What loading finds in a stock ggml, checked against what that ggml does.

#include "abi/ggml.h"
#include "support/stock_ggml.h"

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <thread>
#include <vector>

using namespace ggml_ext;

namespace {

constexpr int N_TABLE_WORDS = 12; // of the smallest table, a device's, that the known ggmls all have

const abi::ggml & loaded() {
    static const abi::ggml instance = [] {
        abi::ggml   g;
        std::string error;
        const auto  params = test::stock().load_params();
        REQUIRE_MESSAGE(abi::load(params, g, error) == GGML_EXT_STATUS_SUCCESS, error);
        return g;
    }();
    return instance;
}

struct context {
    context() : ctx(loaded().fn.ggml_init({1 << 20, nullptr, true})) {}
    ~context() { loaded().fn.ggml_free(ctx); }

    ggml_tensor * tensor(int64_t ne0, int64_t ne1 = 1) const {
        return loaded().fn.ggml_new_tensor_4d(ctx, TYPE_F32, ne0, ne1, 1, 1);
    }

    ggml_context * ctx;
};

struct backend {
    backend() : handle(loaded().fn.ggml_backend_dev_init(test::stock().cpu, nullptr)) { REQUIRE(handle != nullptr); }
    ~backend() { loaded().fn.ggml_backend_free(handle); }

    ggml_backend * handle;
};

std::vector<void *> words_of(void * object, int n) {
    void ** words = static_cast<void **>(object);
    return std::vector<void *>(words, words + n);
}

// Replaces a table entry while it lives.
struct patched {
    template <typename F> patched(void * object, int word, F * function) : slot(abi::slot_of(object, word)), original(slot) {
        REQUIRE(word >= 0);
        slot = reinterpret_cast<void *>(function);
    }
    ~patched() { slot = original; }

    void *& slot;
    void *  original;
};

int n_called = 0;

bool refuse_op(ggml_backend_device *, const ggml_tensor *) { return n_called++, false; }
bool accept_op(ggml_backend_device *, const ggml_tensor *) { return n_called++, true; }

ggml_backend * make_no_backend(ggml_backend_device *, const char *) { return n_called++, nullptr; }

void    free_nothing(ggml_backend *) { n_called++; }
int32_t abort_compute(ggml_backend *, ggml_cgraph *) { return n_called++, GGML_COMPUTE_ABORTED; }
void    ignore_event(ggml_backend *, ggml_backend_event *) { n_called++; }
void *  know_nothing(ggml_backend_reg *, const char *) { return n_called++, nullptr; }

// result of 1 + 2 on all elements, through a direct compute
bool adds(ggml_backend * backend) {
    const auto &          s = test::stock();
    const context         c;
    ggml_tensor *         a      = c.tensor(64);
    ggml_tensor *         b      = c.tensor(64);
    ggml_tensor *         sum    = s.base.ggml_add(c.ctx, a, b);
    ggml_cgraph *         graph  = s.base.ggml_new_graph_custom(c.ctx, 8, false);
    ggml_backend_buffer * buffer = s.ggml_backend_alloc_ctx_tensors(c.ctx, backend);
    s.base.ggml_build_forward_expand(graph, sum);

    const std::vector<float> ones(64, 1.0f);
    const std::vector<float> twos(64, 2.0f);
    std::vector<float>       out(64);
    s.ggml_backend_tensor_set(a, ones.data(), 0, 256);
    s.ggml_backend_tensor_set(b, twos.data(), 0, 256);
    const bool computed = s.base.ggml_backend_graph_compute(backend, graph) == GGML_COMPUTE_SUCCESS;
    s.ggml_backend_tensor_get(sum, out.data(), 0, 256);
    s.base.ggml_backend_buffer_free(buffer);
    return computed && out == std::vector<float>(64, 3.0f);
}

} // namespace

TEST_CASE("COMPAT-1: a stock ggml is known: file, version, tensor, graph and tables") {
    const abi::ggml & g = loaded();
    CHECK(std::filesystem::equivalent(g.base_path, test::stock().base_path));
    CHECK(g.has_cgraph);
    CHECK(g.note == "");
    CHECK(g.version == std::string(test::stock().base.ggml_version()));
}

TEST_CASE("COMPAT-1: loading patches nothing") {
    const auto &       s   = test::stock();
    ggml_backend_reg * reg = s.base.ggml_backend_dev_backend_reg(s.cpu);
    const backend      b;
    const auto         device_before  = words_of(s.cpu, N_TABLE_WORDS);
    const auto         backend_before = words_of(b.handle, N_TABLE_WORDS);
    const auto         reg_before     = words_of(reg, 5);

    abi::ggml   g;
    std::string error;
    CHECK(abi::load(s.load_params(), g, error) == GGML_EXT_STATUS_SUCCESS);
    CHECK(words_of(s.cpu, N_TABLE_WORDS) == device_before);
    CHECK(words_of(b.handle, N_TABLE_WORDS) == backend_before);
    CHECK(words_of(reg, 5) == reg_before);
    CHECK(adds(b.handle));
}

TEST_CASE("COMPAT-1: operations have the ids that ggml's constructors give them") {
    const auto &      s = test::stock();
    const abi::ggml & g = loaded();
    const context     c;
    ggml_tensor *     a = c.tensor(8, 8);
    ggml_tensor *     b = c.tensor(8, 8);

    const std::map<std::string, const ggml_tensor *> made = {
        {"NONE", a},
        {"ADD", s.base.ggml_add(c.ctx, a, b)},
        {"SUB", s.ggml_sub(c.ctx, a, b)},
        {"MUL", s.ggml_mul(c.ctx, a, b)},
        {"SQR", s.ggml_sqr(c.ctx, a)},
        {"UNARY", s.ggml_silu(c.ctx, a)},
        {"SCALE", s.ggml_scale(c.ctx, a, 2.0f)},
        {"NORM", s.ggml_norm(c.ctx, a, 1e-5f)},
        {"RMS_NORM", s.ggml_rms_norm(c.ctx, a, 1e-5f)},
        {"SOFT_MAX", s.ggml_soft_max(c.ctx, a)},
        {"CPY", s.ggml_cpy(c.ctx, a, b)},
        {"CONT", s.ggml_cont(c.ctx, a)},
        {"CONCAT", s.ggml_concat(c.ctx, a, b, 0)},
        {"RESHAPE", s.ggml_reshape_2d(c.ctx, a, 4, 16)},
        {"VIEW", s.ggml_view_2d(c.ctx, a, 4, 4, 32, 0)},
        {"PERMUTE", s.ggml_permute(c.ctx, a, 1, 0, 2, 3)},
        {"TRANSPOSE", s.ggml_transpose(c.ctx, a)},
        {"MUL_MAT", s.base.ggml_mul_mat(c.ctx, a, b)},
    };
    for (const auto & [name, node] : made) {
        CAPTURE(name);
        CHECK(g.find_op(name.c_str()) == node->op);
    }
    CHECK(g.op.none == made.at("NONE")->op);
    CHECK(g.op.add == made.at("ADD")->op);
    CHECK(g.op.cpy == made.at("CPY")->op);
    CHECK(g.op.cont == made.at("CONT")->op);
    CHECK(g.op.reshape == made.at("RESHAPE")->op);
    CHECK(g.op.view == made.at("VIEW")->op);
    CHECK(g.op.permute == made.at("PERMUTE")->op);
    CHECK(g.op.transpose == made.at("TRANSPOSE")->op);
    CHECK(g.op.mul_mat == made.at("MUL_MAT")->op);
}

TEST_CASE("COMPAT-1: the table of operations ends where it ends") {
    const abi::ggml & g = loaded();
    CHECK(g.n_ops() > 80);
    CHECK(g.n_ops() < 200);
    CHECK(std::string(g.fn.ggml_op_name(g.n_ops() - 1)) == "GLU"); // the last one in ggml.h
    for (const char * name : {"", "add", "x+y", "ABS", "SILU", "REGLU", "f32", "NO_SUCH_OP"}) {
        CAPTURE(name);
        CHECK(g.find_op(name) == -1);
    }
}

TEST_CASE("COMPAT-1: what is put into a device's table is what ggml calls") {
    const abi::ggml & g      = loaded();
    auto *            device = test::stock().cpu;
    const context     c;
    ggml_tensor *     node = g.fn.ggml_add(c.ctx, c.tensor(4), c.tensor(4));
    n_called               = 0;

    CHECK(g.fn.ggml_backend_dev_supports_op(device, node));
    {
        const patched p(device, g.slot.dev_supports_op, refuse_op);
        CHECK_FALSE(g.fn.ggml_backend_dev_supports_op(device, node));
    }
    CHECK(g.fn.ggml_backend_dev_supports_op(device, node));
    CHECK_FALSE(g.fn.ggml_backend_dev_offload_op(device, node));
    {
        const patched p(device, g.slot.dev_offload_op, accept_op);
        CHECK(g.fn.ggml_backend_dev_offload_op(device, node));
    }
    {
        const patched p(device, g.slot.dev_init_backend, make_no_backend);
        CHECK(g.fn.ggml_backend_dev_init(device, nullptr) == nullptr);
    }
    CHECK(n_called == 3);
}

TEST_CASE("COMPAT-1: what is put into a backend's or a registry's table is what ggml calls") {
    const abi::ggml &  g = loaded();
    const backend      b;
    ggml_backend_event event = {test::stock().cpu, nullptr};
    ggml_backend_reg * reg   = g.fn.ggml_backend_dev_backend_reg(test::stock().cpu);
    n_called                 = 0;
    {
        const patched p(b.handle, g.slot.backend_graph_compute, abort_compute);
        CHECK(g.fn.ggml_backend_graph_compute(b.handle, nullptr) == GGML_COMPUTE_ABORTED);
    }
    {
        const patched p(b.handle, g.slot.backend_free, free_nothing);
        g.fn.ggml_backend_free(b.handle);
    }
    {
        const patched p(b.handle, g.slot.backend_event_record, ignore_event);
        g.fn.ggml_backend_event_record(&event, b.handle);
    }
    {
        const patched p(b.handle, g.slot.backend_event_wait, ignore_event);
        g.fn.ggml_backend_event_wait(b.handle, &event);
    }
    CHECK(n_called == 4);

    CHECK(g.fn.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads") != nullptr);
    {
        const patched p(reg, g.slot.reg_get_proc_address, know_nothing);
        CHECK(g.fn.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads") == nullptr);
    }
    CHECK(n_called == 5);
    CHECK(adds(b.handle));
}

TEST_CASE("COMPAT-1: use counts are those of the edges, in graphs of any shape") {
    const abi::ggml & g = loaded();
    for (unsigned seed = 0; seed < 50; seed++) {
        CAPTURE(seed);
        std::mt19937               random(seed);
        const context              c;
        std::vector<ggml_tensor *> tensors;
        for (int i = 0; i < 5; i++) {
            tensors.push_back(c.tensor(4));
        }
        const auto any = [&] { return tensors[random() % tensors.size()]; };
        for (int i = 0; i < 200; i++) {
            ggml_tensor * left = any();
            tensors.push_back(g.fn.ggml_add(c.ctx, left, any()));
        }
        ggml_cgraph * graph = g.fn.ggml_new_graph_custom(c.ctx, 256, false);
        for (int i = 0; i < 3; i++) {
            g.fn.ggml_build_forward_expand(graph, any());
        }

        std::map<const ggml_tensor *, int> expected;
        for (int i = 0; i < g.fn.ggml_graph_n_nodes(graph); i++) {
            for (const ggml_tensor * src : g.fn.ggml_graph_node(graph, i)->src) {
                expected[src] += src != nullptr ? 1 : 0;
            }
        }
        for (const ggml_tensor * tensor : tensors) { // those that are not in the graph count 0
            CHECK(abi::graph_use_count(graph, tensor) == expected[tensor]);
        }
    }
}

TEST_CASE("COMPAT-1: a graph without a hash set counts nothing") {
    const ggml_cgraph empty = {};
    const context     c;
    CHECK(abi::graph_use_count(&empty, c.tensor(4)) == 0);
}

TEST_CASE("COMPAT-1: graph_optimize is found in a live CPU backend, which is left as it was") {
    abi::ggml     g = loaded();
    const backend b;
    const int     n_words = g.slot.backend_event_wait + 2;
    const auto    before  = words_of(b.handle, n_words);

    abi::probe_graph_optimize(g, test::stock().cpu, b.handle);
    CHECK(g.graph_optimize_probed);
    CHECK(g.has_cgraph);
    CHECK(g.note == "");
    CHECK(g.slot.backend_graph_optimize > g.slot.backend_event_wait);
    CHECK(words_of(b.handle, n_words) == before);
    CHECK(adds(b.handle));

    const int slot = g.slot.backend_graph_optimize;
    abi::probe_graph_optimize(g, test::stock().cpu, b.handle);
    CHECK(g.slot.backend_graph_optimize == slot);
}

TEST_CASE("COMPAT-1: what is put into the slot of graph_optimize is called once a split, with the split's nodes") {
    static std::vector<ggml_tensor *> seen;

    abi::ggml     g = loaded();
    const backend b;
    abi::probe_graph_optimize(g, test::stock().cpu, b.handle);
    REQUIRE(g.graph_optimize_probed);

    const context              c;
    std::vector<ggml_tensor *> nodes = {g.fn.ggml_add(c.ctx, c.tensor(4), c.tensor(4))};
    for (int i = 0; i < 6; i++) {
        nodes.push_back(g.fn.ggml_add(c.ctx, nodes.back(), nodes.front()));
    }
    ggml_cgraph * graph = g.fn.ggml_new_graph_custom(c.ctx, 64, false);
    g.fn.ggml_build_forward_expand(graph, nodes.back());

    void (*record)(ggml_backend *, ggml_cgraph *) = [](ggml_backend *, ggml_cgraph * split) {
        seen.insert(seen.end(), split->nodes, split->nodes + split->n_nodes);
    };
    const patched        p(b.handle, g.slot.backend_graph_optimize, record);
    ggml_backend *       handle = b.handle;
    ggml_backend_sched * sched  = g.fn.ggml_backend_sched_new(&handle, nullptr, 1, 64, false, false);
    CHECK(g.fn.ggml_backend_sched_reserve(sched, graph));
    g.fn.ggml_backend_sched_free(sched);
    CHECK(seen == nodes);
}

TEST_CASE("COMPAT-1: a device that is no CPU leaves planning off, and says why") {
    abi::ggml              g = loaded();
    const backend          b;
    std::array<void *, 64> gpu;
    int32_t (*type)(ggml_backend_device *) = [](ggml_backend_device *) -> int32_t { return 1; };
    gpu.fill(reinterpret_cast<void *>(type));

    abi::probe_graph_optimize(g, reinterpret_cast<ggml_backend_device *>(gpu.data()), b.handle);
    CHECK_FALSE(g.graph_optimize_probed);
    CHECK_FALSE(g.has_cgraph);
    CHECK(g.slot.backend_graph_optimize == -1);
    CHECK(g.note == "graph_optimize: it needs a backend of a CPU device; no planning, no fusion");
    CHECK(adds(b.handle));
}

TEST_CASE("COMPAT-1: several threads may load at once") {
    std::array<int, 8>       status;
    std::vector<std::thread> threads;
    status.fill(-1);
    test::stock();
    for (int & result : status) {
        threads.emplace_back([&result] {
            abi::ggml   g;
            std::string error;
            result = abi::load(test::stock().load_params(), g, error);
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    for (const int result : status) {
        CHECK(result == GGML_EXT_STATUS_SUCCESS);
    }
}
