#pragma once
// A GPU of ggml's with the kernel library registered, and graphs on it.

#include "core/fixture.h"
#include "ggml-ext-cpu-ops.h"
#include "support/graph_ops.h"
#include "support/kernel_library.h"

#include <cuda_runtime_api.h>

#include <cmath>
#include <numeric>
#include <string>

namespace ggml_ext::test {

constexpr int F32 = 0, F16 = 1, I8 = 24, I32 = 26;

inline ggml_backend_device * find_gpu() {
    const auto & g = stock();
    for (size_t i = 0; i < g.ggml_backend_dev_count(); ++i) {
        ggml_backend_device * device = g.ggml_backend_dev_get(i);
        if (std::string(g.base.ggml_backend_reg_name(g.base.ggml_backend_dev_backend_reg(device))) == "CUDA") {
            return device;
        }
    }
    return nullptr;
}

inline ggml_backend_device * attached_gpu() {
    attached_cpu();
    REQUIRE_OK(ggml_ext_attach_device(find_gpu()));
    return find_gpu();
}

inline bool graphs_disabled() {
    return std::getenv("GGML_CUDA_DISABLE_GRAPHS") != nullptr;
}

// reasons of the cases that this machine cannot run
inline std::vector<std::string> & skips() {
    static std::vector<std::string> all;
    return all;
}

inline void skip(const std::string & reason) {
    skips().push_back(reason);
}

struct kernel_library : registered_library {
    kernel_library() : registered_library(GGML_EXT_TEST_CUDA_LIBRARY, attached_gpu()) {}
};

// A graph in a scheduler with the GPU first and the CPU behind it; weights have memory of their own on the GPU.
class model {
public:
    explicit model(bool all_on_gpu = true) : g(stock()), all_on_gpu_(all_on_gpu) {
        backend               = g.base.ggml_backend_dev_init(attached_gpu(), nullptr);
        cpu                   = g.base.ggml_backend_dev_init(g.cpu, nullptr);
        ctx                   = g.base.ggml_init({16 << 20, nullptr, true});
        weights_ctx           = g.base.ggml_init({1 << 20, nullptr, true});
        graph                 = g.base.ggml_new_graph_custom(ctx, 1024, false);
        ggml_backend * both[] = {backend, cpu};
        sched                 = g.base.ggml_backend_sched_new(both, nullptr, 2, 2048, false, true);
    }
    ~model() {
        g.base.ggml_backend_sched_free(sched);
        if (weights_ != nullptr) {
            g.base.ggml_backend_buffer_free(weights_);
        }
        g.base.ggml_backend_free(backend);
        g.base.ggml_backend_free(cpu);
        g.base.ggml_free(weights_ctx);
        g.base.ggml_free(ctx);
    }
    model(const model &)             = delete;
    model & operator=(const model &) = delete;

    ggml_tensor * weight(int32_t type, std::vector<int64_t> ne) {
        return weight_tensors_.emplace_back(g.base.ggml_new_tensor(weights_ctx, type, static_cast<int>(ne.size()), ne.data()));
    }
    ggml_tensor * input(int32_t type, std::vector<int64_t> ne) {
        ggml_tensor * t = g.base.ggml_new_tensor(ctx, type, static_cast<int>(ne.size()), ne.data());
        g.base.ggml_set_input(t);
        g.base.ggml_set_output(t); // its memory stays its own: it is not set before every compute
        inputs_.push_back(t);
        return t;
    }
    ggml_tensor * node(const char * op, std::vector<ggml_tensor *> src, const void * attrs, size_t attrs_size) {
        ggml_tensor * out = nullptr;
        ggml_ext_op_create(ctx, op, static_cast<int32_t>(src.size()), src.data(), attrs, attrs_size, &out);
        return out;
    }
    void expand(ggml_tensor * t) {
        g.base.ggml_set_output(t);
        g.base.ggml_build_forward_expand(graph, t);
    }

    void allocate() {
        if (weights_ == nullptr) {
            weights_ = g.ggml_backend_alloc_ctx_tensors(weights_ctx, backend);
        }
        g.ggml_backend_sched_reset(sched);
        if (all_on_gpu_) {
            for (ggml_tensor * t : inputs_) {
                g.ggml_backend_sched_set_tensor_backend(sched, t, backend);
            }
            for (int i = 0; i < g.base.ggml_graph_n_nodes(graph); ++i) {
                g.ggml_backend_sched_set_tensor_backend(sched, g.base.ggml_graph_node(graph, i), backend);
            }
        }
        REQUIRE(g.ggml_backend_sched_alloc_graph(sched, graph));
    }
    void compute() {
        REQUIRE_MESSAGE(g.ggml_backend_sched_graph_compute(sched, graph) == GGML_COMPUTE_SUCCESS, ggml_ext_last_error());
    }

    // all inputs and weights that are F32 at random, I32 counting up from 0
    void fill() {
        uint32_t seed = 0;
        for (const auto * all : {&inputs_, &weight_tensors_}) {
            for (ggml_tensor * t : *all) {
                const auto n = static_cast<size_t>(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
                if (t->type == F32) {
                    put(t, random_floats(n, ++seed));
                } else if (t->type == I32) {
                    std::vector<int32_t> values(n);
                    std::iota(values.begin(), values.end(), 0);
                    put(t, values);
                }
            }
        }
    }

    template <typename T> void           put(ggml_tensor * t, const std::vector<T> & values) { put_values(t, values); }
    template <typename T> std::vector<T> take(const ggml_tensor * t) { return take_values<T>(t); }

    std::string kernels() { return kernels_of(backend); }

    ggml_ext_backend_stats stats() {
        ggml_ext_backend_stats s{};
        s.struct_size = sizeof(s);
        REQUIRE_OK(ggml_ext_get_backend_stats(backend, &s));
        return s;
    }

    const stock_ggml &          g;
    ggml_backend *              backend     = nullptr;
    ggml_backend *              cpu         = nullptr;
    ggml_context *              ctx         = nullptr;
    ggml_context *              weights_ctx = nullptr;
    ggml_cgraph *               graph       = nullptr;
    struct ggml_backend_sched * sched       = nullptr;

private:
    bool                       all_on_gpu_;
    ggml_backend_buffer *      weights_ = nullptr;
    std::vector<ggml_tensor *> inputs_, weight_tensors_;
};

inline void check_close(const std::vector<float> & y, const std::vector<double> & expected, double tolerance) {
    REQUIRE(y.size() == expected.size());
    double worst = 0;
    for (size_t i = 0; i < y.size(); ++i) {
        const double error = std::fabs(y[i] - expected[i]) / (1 + std::fabs(expected[i]));
        worst              = error > worst || std::isnan(error) ? error : worst;
    }
    CHECK(worst <= tolerance);
}

} // namespace ggml_ext::test
