#pragma once
// A graph under test: tensors without memory in a context of its own, and the layer's view of it.

#include "plan/graph_index.h"
#include "support/graph_ops.h"

#include <doctest/doctest.h>

#include <initializer_list>
#include <memory>

namespace ggml_ext::test {

inline const abi::ggml & loaded_ggml() {
    static const abi::ggml instance = [] {
        abi::ggml   g;
        std::string error;
        const auto  params = stock().load_params();
        const int   status = abi::load(params, g, error);
        REQUIRE_MESSAGE(status == GGML_EXT_STATUS_SUCCESS, error);
        return g;
    }();
    return instance;
}

inline char marker; // its address stands for the callback of registered operators

inline const plan::op_table & op_table() {
    static const plan::op_table instance(loaded_ggml(), &marker);
    return instance;
}

class graph_fixture {
public:
    explicit graph_fixture(size_t n_tensors = 256)
        : context_(stock().base.ggml_init({n_tensors * (stock().base.ggml_tensor_overhead() + 64) +
                                               stock().base.ggml_graph_overhead_custom(n_tensors, false),
                                           nullptr, true})),
          graph_(stock().base.ggml_new_graph_custom(context_.get(), n_tensors, false)) {}

    ggml_context * ctx() const { return context_.get(); }
    ggml_cgraph *  graph() const { return graph_; }

    ggml_tensor * leaf(int64_t ne0, int64_t ne1, int32_t type = TYPE_F32) const {
        return stock().ggml_new_tensor_2d(ctx(), type, ne0, ne1);
    }

    static ggml_tensor * named(ggml_tensor * tensor, const char * name) { return stock().base.ggml_set_name(tensor, name); }

    // sets all nodes that `tensors` need into the graph, in this order
    void expand(std::initializer_list<ggml_tensor *> tensors) const {
        for (ggml_tensor * t : tensors) {
            stock().base.ggml_build_forward_expand(graph_, t);
        }
    }

    plan::graph_index index() const { return plan::graph_index(op_table(), graph_); }

private:
    struct free_context {
        void operator()(ggml_context * c) const { stock().base.ggml_free(c); }
    };
    std::unique_ptr<ggml_context, free_context> context_;
    ggml_cgraph *                               graph_;
};

} // namespace ggml_ext::test
