// C entries for match and optimize callbacks.

#include "plan/graph.h"
#include "plan/delay.h"
#include "support/status.h"

#include <algorithm>

using namespace ggml_ext;

int32_t ggml_ext_graph_n_nodes(const ggml_ext_graph * graph) {
    return graph == nullptr ? 0 : graph->index.n_nodes();
}

const ggml_ext_node * ggml_ext_graph_node(const ggml_ext_graph * graph, int32_t index) {
    if (graph == nullptr || index < 0 || index >= graph->index.n_nodes()) {
        return nullptr;
    }
    const ggml_ext_node * node   = nullptr;
    const int             status = guarded([&]() -> int {
        auto & view = graph->views[index];
        if (view.empty()) {
            ggml_tensor * tensor = graph->index.node(index);
            view                 = kept_nodes(graph->index.ggml(), &tensor, 1, graph->memory);
        }
        node = view.get()[0];
        return GGML_EXT_STATUS_SUCCESS;
    });
    return status == GGML_EXT_STATUS_SUCCESS ? node : nullptr;
}

int32_t ggml_ext_graph_use_count(const ggml_ext_graph * graph, int32_t index) {
    return graph == nullptr || index < 0 || index >= graph->index.n_nodes() ? -1 : graph->index.use_count(index);
}

int32_t ggml_ext_graph_find(const ggml_ext_graph * graph, const ggml_tensor * tensor) {
    return graph == nullptr || tensor == nullptr ? -1 : graph->index.find(tensor);
}

int ggml_ext_graph_delay(ggml_ext_graph * graph, int32_t first, int32_t count, int32_t before) {
    return guarded([&]() -> int {
        if (graph == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "graph is NULL");
        }
        if (!graph->may_reorder) {
            return fail(GGML_EXT_STATUS_UNSUPPORTED, "FUSE-3: nodes may be moved in optimize only, not in match");
        }
        const int n = graph->index.n_nodes();
        if (first < 0 || count < 1 || before < 0 || first > n - count || before > n || before < first + count) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT,
                        "FUSE-3: cannot move %d node(s) from %d before %d in a graph of %d: expected first + count <= before <= %d", count,
                        first, before, n, n);
        }
        const std::string reason = plan::delay(graph->index, first, count, before);
        if (!reason.empty()) {
            return fail(GGML_EXT_STATUS_UNSUPPORTED, "%s", reason.c_str());
        }
        // the views stay alive until the callback returns, at their nodes' new places
        std::rotate(graph->views.begin() + first, graph->views.begin() + first + count, graph->views.begin() + before);
        return GGML_EXT_STATUS_SUCCESS;
    });
}
