#include "cuda/graph_edges.h"

#include "support/status.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace ggml_ext::cuda {

namespace {

// Of the nodes as they were made: one that another depends on comes before it.
class edges_of_nodes {
public:
    explicit edges_of_nodes(size_t n_nodes) : before_(n_nodes), seen_(n_nodes, 0) {}

    void add(size_t from, size_t to) { before_[to].push_back(from); }

    const std::vector<size_t> & before(size_t node) const { return before_[node]; }

    // besides the edge between the two
    bool is_implied(size_t from, size_t to) {
        std::vector<size_t> left;
        for (const size_t other : before_[to]) {
            if (other > from) {
                left.push_back(other);
            }
        }
        ++walk_;
        while (!left.empty()) {
            const size_t node = left.back();
            left.pop_back();
            if (node == from) {
                return true;
            }
            if (node > from && seen_[node] != walk_) {
                seen_[node] = walk_;
                left.insert(left.end(), before_[node].begin(), before_[node].end());
            }
        }
        return false;
    }

private:
    std::vector<std::vector<size_t>> before_;
    std::vector<size_t>              seen_; // the latest walk that came there
    size_t                           walk_ = 0;
};

struct edge_list {
    std::vector<CUgraphNode>     from, to;
    std::vector<CUgraphEdgeData> data;

    void resize(size_t n) {
        from.resize(n);
        to.resize(n);
        data.resize(n);
    }
};

int read_nodes(const driver & cu, CUgraph graph, std::vector<CUgraphNode> & nodes) {
    size_t n = 0;
    if (const int status = check(cu, cu.cuGraphGetNodes(graph, nullptr, &n), "cuGraphGetNodes"); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    nodes.resize(n);
    return n == 0 ? static_cast<int>(GGML_EXT_STATUS_SUCCESS) : check(cu, cu.cuGraphGetNodes(graph, nodes.data(), &n), "cuGraphGetNodes");
}

int read_edges(const driver & cu, CUgraph graph, edge_list & edges) {
    size_t n = 0;
    if (const int status = check(cu, cu.cuGraphGetEdges(graph, nullptr, nullptr, nullptr, &n), "cuGraphGetEdges"); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    edges.resize(n);
    return n == 0 ? static_cast<int>(GGML_EXT_STATUS_SUCCESS)
                  : check(cu, cu.cuGraphGetEdges(graph, edges.from.data(), edges.to.data(), edges.data.data(), &n), "cuGraphGetEdges");
}

} // namespace

int remove_implied_edges(const driver & cu, CUgraph graph) {
    if (cu.cuGraphGetEdges == nullptr || cu.cuGraphRemoveDependencies == nullptr) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    std::vector<CUgraphNode> nodes;
    edge_list                edges;
    if (const int status = read_nodes(cu, graph, nodes); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (const int status = read_edges(cu, graph, edges); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    std::unordered_map<CUgraphNode, size_t> places;
    for (const CUgraphNode node : nodes) {
        places.emplace(node, places.size());
    }
    edges_of_nodes known(nodes.size());
    for (size_t i = 0; i < edges.from.size(); ++i) {
        const size_t from = places.at(edges.from[i]), to = places.at(edges.to[i]);
        if (from >= to) {
            return GGML_EXT_STATUS_SUCCESS; // not a capture's order
        }
        known.add(from, to);
    }
    edge_list implied;
    for (size_t i = 0; i < edges.from.size(); ++i) {
        const size_t to = places.at(edges.to[i]);
        if (known.before(to).size() > 1 && known.is_implied(places.at(edges.from[i]), to)) {
            implied.from.push_back(edges.from[i]);
            implied.to.push_back(edges.to[i]);
            implied.data.push_back(edges.data[i]);
        }
    }
    return implied.from.empty() ? static_cast<int>(GGML_EXT_STATUS_SUCCESS)
                                : check(cu,
                                        cu.cuGraphRemoveDependencies(graph, implied.from.data(), implied.to.data(), implied.data.data(),
                                                                     implied.from.size()),
                                        "cuGraphRemoveDependencies");
}

} // namespace ggml_ext::cuda
