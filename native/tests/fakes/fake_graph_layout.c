// A ggml that keeps the number of a graph's nodes where the known ones keep its size.

int ggml_graph_n_nodes(const int * graph) { return graph[0]; }
