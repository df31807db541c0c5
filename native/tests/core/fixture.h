#pragma once
// An attached CPU device, and graphs run through the scheduler or directly, for tests of the C interface.

#include "ggml-ext.h"
#include "support/stock_ggml.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

namespace ggml_ext::test {

#define CHECK_OK(call) CHECK_MESSAGE((call) == GGML_EXT_STATUS_SUCCESS, ggml_ext_last_error())
#define REQUIRE_OK(call) REQUIRE_MESSAGE((call) == GGML_EXT_STATUS_SUCCESS, ggml_ext_last_error())

inline ggml_backend_device * attached_cpu() {
    const ggml_ext_load_params params = stock().load_params();
    REQUIRE_OK(ggml_ext_load(&params));
    REQUIRE_OK(ggml_ext_attach_device(stock().cpu));
    return stock().cpu;
}

// A backend of the attached CPU device with a context and a graph.
class bench {
public:
    explicit bench(bool direct = false, size_t graph_size = 64) : g(stock()), direct_(direct) {
        backend = g.base.ggml_backend_dev_init(attached_cpu(), nullptr);
        // not ggml's default of four: waiting threads without a core of their own are very slow
        auto set_n_threads = reinterpret_cast<void (*)(ggml_backend *, int)>(g.base.ggml_backend_reg_get_proc_address(
            g.base.ggml_backend_dev_backend_reg(stock().cpu), "ggml_backend_set_n_threads"));
        set_n_threads(backend, 2);
        ctx   = g.base.ggml_init({64 * 1024 * 1024, nullptr, true});
        graph = g.base.ggml_new_graph_custom(ctx, graph_size, false);
        sched = direct ? nullptr : g.base.ggml_backend_sched_new(&backend, nullptr, 1, graph_size * 4, false, true);
    }
    ~bench() {
        if (sched != nullptr) {
            g.base.ggml_backend_sched_free(sched);
        }
        for (ggml_backend_buffer * buffer : buffers_) {
            g.base.ggml_backend_buffer_free(buffer);
        }
        g.base.ggml_backend_free(backend);
        g.base.ggml_free(ctx);
    }
    bench(const bench &)             = delete;
    bench & operator=(const bench &) = delete;

    ggml_tensor * input(std::initializer_list<int64_t> ne) {
        std::vector<int64_t> dims(ne);
        ggml_tensor *        t = g.base.ggml_new_tensor(ctx, TYPE_F32, static_cast<int>(dims.size()), dims.data());
        g.base.ggml_set_input(t);
        return t;
    }

    void expand(ggml_tensor * t) {
        g.base.ggml_set_output(t);
        g.base.ggml_build_forward_expand(graph, t);
    }

    // allocates what has no address yet
    void allocate() {
        if (direct_) {
            buffers_.push_back(g.ggml_backend_alloc_ctx_tensors(ctx, backend));
        } else {
            REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
        }
    }

    int32_t compute() {
        return direct_ ? g.base.ggml_backend_graph_compute(backend, graph) : g.ggml_backend_sched_graph_compute(sched, graph);
    }

    void set(ggml_tensor * t, const std::vector<float> & values) {
        g.ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(float));
    }

    std::vector<float> get(const ggml_tensor * t) {
        std::vector<float> values(static_cast<size_t>(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]));
        g.ggml_backend_tensor_get(t, values.data(), 0, values.size() * sizeof(float));
        return values;
    }

    const stock_ggml &          g;
    ggml_backend *              backend = nullptr;
    ggml_context *              ctx     = nullptr;
    ggml_cgraph *               graph   = nullptr;
    struct ggml_backend_sched * sched   = nullptr;

private:
    bool                               direct_;
    std::vector<ggml_backend_buffer *> buffers_;
};

// withdraws at the end of a scope
struct registration {
    ggml_ext_registration * handle                 = nullptr;
    registration()                                 = default;
    registration(const registration &)             = delete;
    registration & operator=(const registration &) = delete;
    ~registration() {
        if (handle != nullptr) {
            CHECK_OK(ggml_ext_unregister(handle));
        }
    }
};

inline std::vector<float> ramp(size_t n, float from = -2.0f, float step = 0.125f) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) {
        v[i] = from + step * static_cast<float>(i % 37);
    }
    return v;
}

} // namespace ggml_ext::test
