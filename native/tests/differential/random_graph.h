#pragma once
// Random graphs over ggml's common operations, the same again for the same seed: views of views, in-place operations, copies,
// second consumers, output flags. All values have one shape [width, rows], so that any operation can follow any other, and they
// stay small.

#include "support/graph_ops.h"

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace ggml_ext::test {

struct random_graph_params {
    uint64_t seed    = 1;
    int      n_nodes = 50; // the graph has at least so many, and a few more

    // Tensors that view a value but are no nodes (ggml_view_tensor): reads without an edge. ggml's allocator does not see them,
    // so only for graphs whose tensors all have memory of their own.
    bool hidden_views = false;
};

class random_graph {
public:
    // Weights, indices and state get memory of `backend`'s; inputs and nodes are left to whoever allocates the graph.
    random_graph(const random_graph_params & params, ggml_backend * backend);

    ggml_context * ctx() const { return ctx_.get(); } // inputs and nodes
    ggml_cgraph *  graph() const { return graph_; }

    // "seed 7: 54 nodes (12 views, 6 in place, 4 copies), 3 outputs"
    std::string describe() const;

    // Contents of weights, indices, state and inputs, the same at each call. After allocation, and before each computation.
    void fill() const;

    // What runs must agree on: tensors flagged as output, and the state that nodes write to
    const std::vector<ggml_tensor *> & observed() const { return observed_; }

private:
    ggml_tensor * add_random_nodes();
    ggml_tensor * unary(ggml_tensor * x);
    ggml_tensor * unary_in_place(ggml_tensor * x);
    ggml_tensor * binary(ggml_tensor * a);
    ggml_tensor * product(ggml_tensor * x);
    ggml_tensor * layout(ggml_tensor * x);
    ggml_tensor * conversion(ggml_tensor * x);
    ggml_tensor * by_rows(ggml_tensor * x);
    ggml_tensor * by_columns(ggml_tensor * x);
    ggml_tensor * copy(ggml_tensor * x);
    ggml_tensor * write_part(ggml_tensor * x);
    ggml_tensor * rope(ggml_tensor * x);
    ggml_tensor * calm(ggml_tensor * x);

    uint64_t      below(uint64_t n) { return random_() % n; } // the same on every platform
    ggml_tensor * any(const std::vector<ggml_tensor *> & list) { return list[below(list.size())]; }
    ggml_tensor * value();
    ggml_tensor * value_apart_from(const ggml_tensor * other); // of another storage; an input if need be
    ggml_tensor * rows_of(ggml_tensor * x, int64_t first, int64_t count);
    ggml_tensor * columns_of(ggml_tensor * x, int64_t first, int64_t count);
    ggml_tensor * state_rows(const ggml_tensor * apart_from);
    ggml_tensor * new_leaf(ggml_context * ctx, int32_t type, int64_t ne0, int64_t ne1);
    void          finish();

    struct free_context {
        void operator()(ggml_context * c) const { stock().base.ggml_free(c); }
    };
    struct free_buffer {
        void operator()(ggml_backend_buffer * b) const { stock().base.ggml_backend_buffer_free(b); }
    };

    const random_graph_params params_;
    std::mt19937_64           random_;
    const int64_t             width_;
    const int64_t             rows_;

    std::unique_ptr<ggml_context, free_context>       fixed_ctx_; // weights, indices, state
    std::unique_ptr<ggml_context, free_context>       ctx_;
    std::unique_ptr<ggml_backend_buffer, free_buffer> fixed_buffer_;
    ggml_cgraph *                                     graph_;

    std::vector<ggml_tensor *> leaves_;       // all that fill() fills
    std::vector<ggml_tensor *> weights_;      // [width, width]
    std::vector<ggml_tensor *> wide_weights_; // [width, 2 width]
    std::vector<ggml_tensor *> gains_;        // [width, 1]
    std::vector<ggml_tensor *> indices_;      // I32 [rows]: positions, or rows of a value
    std::vector<ggml_tensor *> state_index_;  // I64 [rows]: distinct rows of a state
    std::vector<ggml_tensor *> state_;        // [width, STATE_ROWS]
    std::vector<ggml_tensor *> values_;       // F32 [width, rows], contiguous
    std::vector<ggml_tensor *> observed_;
};

// a tensor's elements, without what lies between them in memory
std::string bytes_of(const ggml_tensor * tensor);

} // namespace ggml_ext::test
