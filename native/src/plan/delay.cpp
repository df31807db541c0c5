#include "plan/delay.h"

#include <vector>

namespace ggml_ext::plan {

namespace {

struct access {
    int                 node;   // position of the node that reads or writes
    const ggml_tensor * tensor; // its byte range
    const ggml_tensor * root;   // owner of the storage
};

// What the moved nodes read and write. Nodes without work touch no storage.
class moved_range {
public:
    moved_range(const graph_index & index, int first, int count) : index_(index), first_(first), last_(first + count - 1) {
        for (int i = first_; i <= last_; ++i) {
            const ggml_tensor * node = index.node(i);
            if (index.ops().effect_of(node) == effect::none) {
                continue;
            }
            writes_.push_back({i, node, owner(node)});
            for (const ggml_tensor * src : node->src) {
                if (src) {
                    reads_.push_back({i, src, owner(src)});
                }
            }
        }
    }

    // why node i may not be crossed; "" if it may
    std::string check_crossing(int i) const {
        const ggml_tensor * node = index_.node(i);
        const effect        e    = index_.ops().effect_of(node);
        for (const ggml_tensor * src : node->src) {
            if (src && src != node && is_moved(src)) {
                return depends(i, src, e);
            }
        }
        if (node->view_src && is_moved(node->view_src)) {
            return depends(i, node->view_src, e);
        }
        if (e == effect::none) {
            return "";
        }
        for (const ggml_tensor * src : node->src) {
            if (src) {
                if (const access * write = overlapping(writes_, src)) {
                    return "FUSE-3: " + index_.label(i) + " reads storage that " + index_.label(write->node) + " writes";
                }
            }
        }
        if (const access * read = overlapping(reads_, node)) {
            return "FUSE-3: " + index_.label(i) + " writes storage that " + index_.label(read->node) + " reads";
        }
        if (const access * write = overlapping(writes_, node)) {
            return "FUSE-3: " + index_.label(i) + " and " + index_.label(write->node) + " write the same storage";
        }
        return "";
    }

private:
    bool is_moved(const ggml_tensor * tensor) const {
        const int i = index_.find(tensor);
        return i >= first_ && i <= last_;
    }

    std::string depends(int i, const ggml_tensor * on, effect e) const {
        const std::string moved = index_.label(index_.find(on));
        if (e == effect::write_view && owner(index_.node(i)) == owner(on)) {
            return "FUSE-3: " + index_.label(i) + " works in place on " + moved + ": move them together";
        }
        return "FUSE-3: " + index_.label(i) + " reads " + moved;
    }

    const access * overlapping(const std::vector<access> & accesses, const ggml_tensor * tensor) const {
        const ggml_tensor * root = owner(tensor);
        for (const access & a : accesses) {
            // most pairs have different owners and no addresses yet
            if ((a.root == root || (a.root->data && root->data)) && may_alias(index_.ggml(), a.tensor, tensor)) {
                return &a;
            }
        }
        return nullptr;
    }

    const graph_index & index_;
    const int           first_;
    const int           last_;
    std::vector<access> reads_;
    std::vector<access> writes_;
};

// May a node change its place at all?
std::string check_known(const graph_index & index, int i) {
    const ggml_tensor * node = index.node(i);
    if (index.find(node) != i) {
        return "FUSE-3: " + index.label(i) + " stands in the graph more than once";
    }
    if (index.ops().effect_of(node) == effect::unknown) {
        return "FUSE-3: " + index.label(i) + " (" + index.ops().name_of(node) + ") has side effects that are not known";
    }
    return "";
}

} // namespace

std::string delay(graph_index & index, int first, int count, int before) {
    if (first < 0 || count < 1 || first > index.n_nodes() - count || before < first + count || before > index.n_nodes()) {
        return "FUSE-3: cannot move " + std::to_string(count) + " nodes from " + std::to_string(first) + " to before node " +
               std::to_string(before) + " in a graph of " + std::to_string(index.n_nodes()) +
               " nodes: expected 0 <= first, 1 <= count, first + count <= before <= number of nodes";
    }
    for (int i = first; i < before; ++i) {
        std::string reason = check_known(index, i);
        if (!reason.empty()) {
            return reason;
        }
    }
    const moved_range moved(index, first, count);
    for (int i = first + count; i < before; ++i) {
        std::string reason = moved.check_crossing(i);
        if (!reason.empty()) {
            return reason;
        }
    }
    index.move(first, count, before);
    return "";
}

} // namespace ggml_ext::plan
