#pragma once
// What planning must know of a graph: where a node is, who reads it. Linear in nodes and edges, gathered on first demand.

#include "plan/effects.h"

#include <string>
#include <vector>

namespace ggml_ext::plan {

class graph_index {
public:
    // `graph` may be a view of a part of a graph; its node array may be reordered through this index only
    graph_index(const op_table & ops, ggml_cgraph * graph);

    const op_table &  ops() const { return *ops_; }
    const abi::ggml & ggml() const { return ops_->ggml(); }

    ggml_cgraph * graph() const { return graph_; }
    int           n_nodes() const { return graph_->n_nodes; }
    ggml_tensor * node(int i) const { return graph_->nodes[i]; }

    // position of the node that computes `tensor`; -1 where it is none of this graph, or stands in it more than once
    int find(const ggml_tensor * tensor) const;

    // readers of node i in the whole graph (ggml's count: one for each src entry)
    int use_count(int i) const;

    // position of a node behind `last` that reads the storage of node i through a tensor that is no node here, so that no
    // use count tells; -1 where there is none
    int hidden_reader(int i, int last) const;

    // "node 7 ('ffn_gate')", for reasons; names that ggml gave by itself are left out
    std::string label(int i) const;

    // moves nodes [first, first + count) directly before node `before`, and keeps the index right
    void move(int first, int count, int before);

private:
    struct slot {
        const ggml_tensor * tensor;
        int                 position;
    };

    struct hidden_read {
        const ggml_tensor * owner;
        const ggml_tensor * reader;
    };

    slot & slot_for(const ggml_tensor * tensor) const;
    void   build_positions() const;
    void   build_hidden_reads() const;

    const op_table * ops_;
    ggml_cgraph *    graph_;

    // open addressing; empty until asked for
    mutable std::vector<slot> slots_;
    mutable int               shift_ = 0;

    mutable std::vector<hidden_read> hidden_reads_; // hardly any graph has one
    mutable bool                     hidden_reads_built_ = false;
};

} // namespace ggml_ext::plan
