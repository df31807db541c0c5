#pragma once
// The graph that match and optimize callbacks see, behind the opaque struct of ggml-ext.h.

#include "plan/graph_index.h"
#include "registry/describe.h"

#include <vector>

struct ggml_ext_graph {
    ggml_ext::plan::graph_index & index;
    bool                          may_reorder;
    // made when asked for, by node position; emptied by a move
    mutable std::vector<ggml_ext::kept_nodes> views;
    mutable ggml_ext::arena                   memory; // of the views

    ggml_ext_graph(ggml_ext::plan::graph_index & i, bool reorder) : index(i), may_reorder(reorder), views(i.n_nodes()) {}
};
