#pragma once
// What planning must know of a graph, gathered in one pass (linear in nodes and edges).

#include "abi/ggml.h"

#include <unordered_map>
#include <vector>

namespace ggml_ext::plan {

class graph_index {
public:
    // `graph` may be a view of a part of a graph; its node array may be reordered through this index only
    graph_index(const abi::ggml & g, ggml_cgraph * graph);

    const abi::ggml & ggml() const { return *ggml_; }

    int           n_nodes() const { return graph_->n_nodes; }
    ggml_tensor * node(int i) const { return graph_->nodes[i]; }

    // position of the node that computes `tensor`, -1 where it is none of this graph
    int find(const ggml_tensor * tensor) const;

    // readers of node i in the whole graph (ggml's count: one for each src entry)
    int use_count(int i) const;

    // position of the last node here that reads node i, or a view of its storage; i where there is none
    int last_use(int i) const;

    // root owner of a tensor's storage: follows view_src to its end
    static const ggml_tensor * owner(const ggml_tensor * tensor);

    // moves nodes [first, first + count) directly before node `before`, and keeps the index right
    void move(int first, int count, int before);

private:
    const abi::ggml *                            ggml_;
    ggml_cgraph *                                graph_;
    std::unordered_map<const ggml_tensor *, int> position_;
    std::vector<int>                             last_use_;
};

} // namespace ggml_ext::plan
