#include "plan/legality.h"

#include <algorithm>
#include <iterator>

namespace ggml_ext::plan {

namespace {

constexpr int32_t FLAG_LOSS = 8; // GGML_TENSOR_FLAG_LOSS

bool has_elements(const ggml_tensor * tensor) {
    return std::all_of(std::begin(tensor->ne), std::end(tensor->ne), [](int64_t n) { return n > 0; });
}

class match {
public:
    match(const graph_index & index, int first, int count) : index_(index), first_(first), last_(first + count - 1) {}

    // "" where it is legal
    std::string check() {
        const bool legal = all(last_, &match::check_node) && all(last_ - 1, &match::check_storage) && all(last_ - 1, &match::check_flags) &&
                           all(last_ - 1, &match::check_consumers) && all(last_ - 1, &match::check_hidden_readers) && check_final();
        return legal ? "" : reason_;
    }

private:
    bool all(int last, bool (match::*check)(int)) {
        for (int i = first_; i <= last; ++i) {
            if (!(this->*check)(i)) {
                return false;
            }
        }
        return true;
    }

    bool refuse(int i, const std::string & what) {
        reason_ = "FUSE-2: " + index_.label(i) + " " + what;
        return false;
    }

    std::string op_name(int i) const { return index_.ops().name_of(index_.node(i)); }

    // position of a node of the match, -1 for any other tensor
    int inside(const ggml_tensor * tensor) const {
        for (int i = first_; i <= last_; ++i) {
            if (index_.node(i) == tensor) {
                return i;
            }
        }
        return -1;
    }

    bool check_node(int i) {
        const ggml_tensor * node = index_.node(i);
        if (index_.find(node) != i) {
            return refuse(i, "stands in the graph more than once");
        }
        if (!(node->flags & FLAG_COMPUTE)) {
            return refuse(i, "is not computed: its COMPUTE flag is not set");
        }
        if (!has_elements(node)) {
            return refuse(i, "has no elements");
        }
        if (first_ != last_ && index_.ops().effect_of(node) == effect::unknown) {
            return refuse(i, "(" + op_name(i) + ") may write outside the match: what it does is not known");
        }
        return true;
    }

    // of an intermediate: views and in-place nodes, and what the program gave memory of its own
    bool check_storage(int i) {
        const ggml_tensor * node = index_.node(i);
        if (!node->view_src) {
            constexpr int32_t USAGE_COMPUTE = 2; // ggml's allocators mark so what they use again and again
            return !node->buffer || index_.ggml().fn.ggml_backend_buffer_get_usage(node->buffer) == USAGE_COMPUTE ||
                   refuse(i, "has memory of its own, in which the program may read it");
        }
        const bool writes = index_.ops().effect_of(node) != effect::none;
        const int  root   = inside(owner(node));
        if (root < 0 || root >= i) {
            return refuse(i, writes ? "(" + op_name(i) + ") writes to storage outside the match"
                                    : "(" + op_name(i) + ") is a view of storage outside the match");
        }
        return writes ? check_overwritten(i, root) : true;
    }

    // Node i works in place: later nodes may read the storage through it, not through what stood there before
    bool check_overwritten(int i, int root) {
        for (int j = i + 1; j <= last_; ++j) {
            for (const ggml_tensor * src : index_.node(j)->src) {
                if (src && owner(src) == index_.node(root) && inside(src) < i) {
                    return refuse(j, "reads " + index_.label(root) + " around " + index_.label(i) + ", which overwrote it");
                }
            }
        }
        return true;
    }

    bool check_flags(int i) {
        const int flags = index_.node(i)->flags;
        if (flags & FLAG_OUTPUT) {
            return refuse(i, "is flagged as an output");
        }
        if (flags & (FLAG_INPUT | FLAG_PARAM | FLAG_LOSS)) {
            return refuse(i, "is flagged as an input, a parameter or a loss");
        }
        return true;
    }

    bool check_consumers(int i) {
        const ggml_tensor * node   = index_.node(i);
        int                 within = 0; // src entries of the match's nodes
        int                 itself = 0; // among them its own: a conversion names itself as destination
        for (int j = i; j <= last_; ++j) {
            for (const ggml_tensor * src : index_.node(j)->src) {
                if (src == node) {
                    ++within;
                    itself += j == i;
                }
            }
        }
        const int all = index_.use_count(i);
        if (all > within) {
            const int others = all - within;
            return refuse(i, "has " + std::to_string(all - itself) + (all - itself == 1 ? " consumer, " : " consumers, ") +
                                 std::to_string(others) + " of them outside the match");
        }
        if (all < within) {
            return refuse(i, "has consumers that ggml has not counted");
        }
        if (within == itself) {
            return refuse(i, "has no consumer in the match");
        }
        return true;
    }

    // Readers of the storage that ggml counts as readers of another tensor. Not of views: their storage is that of an earlier node.
    bool check_hidden_readers(int i) {
        const ggml_tensor * node = index_.node(i);
        if (node->view_src) {
            return true;
        }
        for (int j = i + 1; j <= last_; ++j) {
            for (const ggml_tensor * src : index_.node(j)->src) {
                if (src && owner(src) == node && inside(src) < 0) {
                    return refuse(j, "reads " + index_.label(i) + " through a view that is no node of the match");
                }
            }
        }
        const int reader = index_.hidden_reader(i, last_);
        if (reader >= 0) {
            return refuse(i, "is read outside the match by " + index_.label(reader) + " through its storage");
        }
        return true;
    }

    bool check_final() {
        const ggml_tensor * node = index_.node(last_);
        if (!node->view_src) {
            return true;
        }
        if (node->op != index_.ggml().op.cpy) {
            return refuse(last_, "(" + op_name(last_) + ") is the final output and owns no storage: only a CPY may write to another's");
        }
        const int root = inside(owner(node));
        if (root >= 0) {
            return refuse(last_, "copies into " + index_.label(root) + ", an intermediate of the match");
        }
        return true;
    }

    const graph_index & index_;
    const int           first_;
    const int           last_;
    std::string         reason_;
};

} // namespace

std::string check_legal(const graph_index & index, int first, int count) {
    if (first < 0 || count < 1 || first > index.n_nodes() - count) {
        return "FUSE-2: nodes " + std::to_string(first) + " to " + std::to_string(int64_t(first) + count - 1) + " are not all in the graph of " +
               std::to_string(index.n_nodes()) + " nodes";
    }
    return match(index, first, count).check();
}

} // namespace ggml_ext::plan
