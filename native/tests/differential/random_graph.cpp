#include "differential/random_graph.h"

#include "plan/effects.h"

#include <algorithm>
#include <cmath>

namespace ggml_ext::test {

namespace {

constexpr int64_t STATE_ROWS  = 24;
constexpr size_t  MAX_TENSORS = 4096;
constexpr float   EPS         = 1e-5f;

ggml_context * new_context(size_t n_tensors, size_t n_graph_nodes) {
    const abi::functions & f    = stock().base;
    size_t                 size = n_tensors * (f.ggml_tensor_overhead() + 16) + (n_graph_nodes ? f.ggml_graph_overhead_custom(n_graph_nodes, false) : 0);
    return f.ggml_init({size, nullptr, true});
}

} // namespace

random_graph::random_graph(const random_graph_params & params, ggml_backend * backend)
    : params_(params),
      random_(params.seed),
      width_(8 << below(3)),
      rows_(2 + below(6)),
      fixed_ctx_(new_context(64, 0)),
      ctx_(new_context(MAX_TENSORS, MAX_TENSORS)),
      graph_(stock().base.ggml_new_graph_custom(ctx(), MAX_TENSORS, false)) {
    ggml_context * fixed = fixed_ctx_.get();
    for (int i = 0; i < 2; ++i) {
        weights_.push_back(new_leaf(fixed, TYPE_F32, width_, width_));
        wide_weights_.push_back(new_leaf(fixed, TYPE_F32, width_, 2 * width_));
        gains_.push_back(new_leaf(fixed, TYPE_F32, width_, 1));
        indices_.push_back(new_leaf(fixed, TYPE_I32, rows_, 1));
        state_index_.push_back(new_leaf(fixed, TYPE_I64, rows_, 1));
        state_.push_back(new_leaf(fixed, TYPE_F32, width_, STATE_ROWS));
    }
    fixed_buffer_.reset(stock().ggml_backend_alloc_ctx_tensors(fixed, backend));
    for (int i = 0; i < 3; ++i) {
        values_.push_back(new_leaf(ctx(), TYPE_F32, width_, rows_));
        stock().base.ggml_set_input(values_.back());
    }
    while (stock().base.ggml_graph_n_nodes(graph_) < params.n_nodes) {
        values_.push_back(add_random_nodes());
        // mostly in the order of creation; what is left out comes when something reads it, or at the end
        if (below(4) != 0) {
            stock().base.ggml_build_forward_expand(graph_, values_.back());
        }
    }
    finish();
}

void random_graph::finish() {
    for (ggml_tensor * v : values_) {
        if (v->src[0]) {
            stock().base.ggml_build_forward_expand(graph_, v);
        }
    }
    for (int i = 0; i < graph_->n_nodes; ++i) {
        ggml_tensor * node = graph_->nodes[i];
        ggml_tensor * root = const_cast<ggml_tensor *>(plan::owner(node));
        if (abi::graph_use_count(graph_, node) == 0 || below(16) == 0) {
            stock().base.ggml_set_output(node);
            observed_.push_back(node);
            // the flag of a view does not keep the allocator from giving its storage away
            if (std::find(state_.begin(), state_.end(), root) == state_.end()) {
                stock().base.ggml_set_output(root);
            }
        }
    }
    observed_.insert(observed_.end(), state_.begin(), state_.end());
}

ggml_tensor * random_graph::new_leaf(ggml_context * ctx, int32_t type, int64_t ne0, int64_t ne1) {
    leaves_.push_back(stock().ggml_new_tensor_2d(ctx, type, ne0, ne1));
    return leaves_.back();
}

ggml_tensor * random_graph::value() {
    const size_t recent = std::min<size_t>(values_.size(), below(3) != 0 ? 4 : values_.size());
    return values_[values_.size() - 1 - below(recent)];
}

ggml_tensor * random_graph::value_apart_from(const ggml_tensor * other) {
    for (int i = 0; i < 4; ++i) {
        ggml_tensor * v = value();
        if (plan::owner(v) != plan::owner(other)) {
            return v;
        }
    }
    return plan::owner(other) == values_[0] ? values_[1] : values_[0];
}

ggml_tensor * random_graph::rows_of(ggml_tensor * x, int64_t first, int64_t count) {
    return stock().ggml_view_2d(ctx(), x, x->ne[0], count, x->nb[1], first * x->nb[1]);
}

ggml_tensor * random_graph::columns_of(ggml_tensor * x, int64_t first, int64_t count) {
    return stock().ggml_view_2d(ctx(), x, count, x->ne[1], x->nb[1], first * x->nb[0]);
}

ggml_tensor * random_graph::state_rows(const ggml_tensor * apart_from) {
    ggml_tensor * s = any(state_);
    if (plan::owner(apart_from) == s) {
        s = state_[0] == s ? state_[1] : state_[0];
    }
    return rows_of(s, below(STATE_ROWS - rows_ + 1), rows_);
}

// keeps sums from growing without bound
ggml_tensor * random_graph::calm(ggml_tensor * x) {
    switch (below(4)) {
        case 0:  return ops().ggml_tanh(ctx(), x);
        case 1:  return stock().ggml_scale(ctx(), x, 0.5f);
        case 2:  return ops().ggml_scale_inplace(ctx(), x, 0.5f);
        default: return stock().ggml_rms_norm(ctx(), x, EPS);
    }
}

ggml_tensor * random_graph::unary(ggml_tensor * x) {
    switch (below(8)) {
        case 0:  return stock().ggml_silu(ctx(), x);
        case 1:  return ops().ggml_tanh(ctx(), x);
        case 2:  return ops().ggml_sigmoid(ctx(), x);
        case 3:  return stock().ggml_scale(ctx(), x, 0.75f);
        case 4:  return stock().ggml_norm(ctx(), x, EPS);
        case 5:  return stock().ggml_rms_norm(ctx(), x, EPS);
        case 6:  return stock().ggml_soft_max(ctx(), x);
        default: return stock().ggml_mul(ctx(), x, ops().ggml_sigmoid(ctx(), ops().ggml_sum_rows(ctx(), x)));
    }
}

ggml_tensor * random_graph::unary_in_place(ggml_tensor * x) {
    switch (below(4)) {
        case 0:  return ops().ggml_silu_inplace(ctx(), x);
        case 1:  return ops().ggml_scale_inplace(ctx(), x, 0.75f);
        case 2:  return ops().ggml_rms_norm_inplace(ctx(), x, EPS);
        default: return ops().ggml_soft_max_inplace(ctx(), x);
    }
}

ggml_tensor * random_graph::binary(ggml_tensor * a) {
    ggml_tensor * b = value_apart_from(a);
    switch (below(9)) {
        case 0:  return stock().base.ggml_add(ctx(), a, any(gains_));
        case 1:  return stock().ggml_mul(ctx(), a, any(gains_));
        case 2:  return stock().ggml_add_inplace(ctx(), a, any(gains_));
        case 3:  return ops().ggml_mul_inplace(ctx(), a, any(gains_));
        case 4:  return calm(stock().base.ggml_add(ctx(), a, b));
        case 5:  return calm(stock().ggml_sub(ctx(), a, b));
        case 6:  return calm(stock().ggml_add_inplace(ctx(), a, b));
        case 7:  return calm(ops().ggml_sub_inplace(ctx(), a, b));
        default: return stock().ggml_mul(ctx(), a, ops().ggml_sigmoid(ctx(), b));
    }
}

ggml_tensor * random_graph::product(ggml_tensor * x) {
    switch (below(4)) {
        case 0:  return ops().ggml_swiglu(ctx(), stock().base.ggml_mul_mat(ctx(), any(wide_weights_), x));
        case 1:  return calm(ops().ggml_swiglu_split(ctx(), stock().base.ggml_mul_mat(ctx(), any(weights_), x), value_apart_from(x)));
        default: return stock().base.ggml_mul_mat(ctx(), any(weights_), x);
    }
}

ggml_tensor * random_graph::layout(ggml_tensor * x) {
    switch (below(4)) {
        case 0: // a view of a view
            return stock().ggml_reshape_2d(ctx(), stock().ggml_reshape_2d(ctx(), x, width_ / 2, rows_ * 2), width_, rows_);
        case 1: {
            ggml_tensor * turned = stock().ggml_cont(ctx(), stock().ggml_transpose(ctx(), x));
            return stock().ggml_cont(ctx(), stock().ggml_transpose(ctx(), turned));
        }
        case 2: {
            ggml_tensor * heads = stock().ggml_permute(ctx(), ops().ggml_reshape_3d(ctx(), x, width_ / 2, 2, rows_), 0, 2, 1, 3);
            return stock().ggml_reshape_2d(ctx(), stock().ggml_cont(ctx(), heads), width_, rows_);
        }
        default: {
            ggml_tensor * row = rows_of(x, below(rows_), 1);
            return ops().ggml_repeat(ctx(), row, value());
        }
    }
}

ggml_tensor * random_graph::conversion(ggml_tensor * x) {
    switch (below(3)) {
        case 0:  return ops().ggml_dup(ctx(), x);
        case 1:  return stock().ggml_cont(ctx(), x);
        default: return ops().ggml_cast(ctx(), ops().ggml_cast(ctx(), x, TYPE_F16), TYPE_F32);
    }
}

// upper and lower rows go different ways
ggml_tensor * random_graph::by_rows(ggml_tensor * x) {
    const int64_t n      = 1 + below(rows_ - 1);
    ggml_tensor * top    = rows_of(x, 0, n);
    ggml_tensor * bottom = rows_of(x, n, rows_ - n);
    top                  = below(2) ? unary_in_place(top) : unary(top);
    bottom               = below(2) ? unary_in_place(bottom) : unary(bottom);
    return stock().ggml_concat(ctx(), top, bottom, 1);
}

ggml_tensor * random_graph::by_columns(ggml_tensor * x) {
    ggml_tensor * other = value_apart_from(x);
    ggml_tensor * left  = columns_of(x, 0, width_ / 2);
    ggml_tensor * right = columns_of(x, width_ / 2, width_ / 2);
    left                = calm(stock().base.ggml_add(ctx(), left, columns_of(other, 0, width_ / 2)));
    right               = ops().ggml_mul_inplace(ctx(), right, columns_of(any(gains_), width_ / 2, width_ / 2));
    return stock().ggml_concat(ctx(), left, right, 0);
}

ggml_tensor * random_graph::copy(ggml_tensor * x) {
    switch (below(4)) {
        case 0:
            return stock().ggml_cpy(ctx(), x, value_apart_from(x));
        case 1:
            return stock().ggml_cpy(ctx(), x, state_rows(x));
        case 2: { // what was copied is read, or missed, through other rows: an order that no edge tells
            stock().base.ggml_build_forward_expand(graph_, stock().ggml_cpy(ctx(), x, state_rows(x)));
            return state_rows(x);
        }
        default: { // a destination whose rows are further apart than long
            ggml_tensor * to = state_rows(x);
            stock().base.ggml_build_forward_expand(
                graph_, stock().ggml_cpy(ctx(), columns_of(x, 0, width_ / 2), columns_of(to, width_ / 2, width_ / 2)));
            return to;
        }
    }
}

ggml_tensor * random_graph::write_part(ggml_tensor * x) {
    const int64_t first = below(rows_);
    ggml_tensor * part  = rows_of(value_apart_from(x), 0, rows_ - first);
    const size_t  nb1   = x->nb[1];
    switch (below(6)) {
        case 0:  return ops().ggml_set_2d(ctx(), x, part, nb1, first * nb1);
        case 1:  return ops().ggml_set_2d_inplace(ctx(), x, part, nb1, first * nb1);
        case 2:  return calm(ops().ggml_acc(ctx(), x, part, nb1, x->nb[2], x->nb[3], first * nb1));
        case 3:  return calm(ops().ggml_acc_inplace(ctx(), x, part, nb1, x->nb[2], x->nb[3], first * nb1));
        case 4:  return stock().ggml_get_rows(ctx(), x, any(indices_));
        default: {
            ggml_tensor * to = const_cast<ggml_tensor *>(plan::owner(state_rows(x)));
            return rows_of(ops().ggml_set_rows(ctx(), to, x, any(state_index_)), below(STATE_ROWS - rows_ + 1), rows_);
        }
    }
}

ggml_tensor * random_graph::rope(ggml_tensor * x) {
    ggml_tensor * heads = ops().ggml_reshape_3d(ctx(), x, width_ / 2, 2, rows_);
    heads               = below(2) ? ops().ggml_rope(ctx(), heads, any(indices_), static_cast<int>(width_ / 2), 0)
                                   : ops().ggml_rope_inplace(ctx(), heads, any(indices_), static_cast<int>(width_ / 2), 0);
    return stock().ggml_reshape_2d(ctx(), heads, width_, rows_);
}

ggml_tensor * random_graph::add_random_nodes() {
    ggml_tensor * x = value();
    if (params_.hidden_views && below(8) == 0) {
        stock().base.ggml_build_forward_expand(graph_, x); // no edge would bring it
        x = ops().ggml_view_tensor(ctx(), x);
    }
    switch (below(16)) {
        case 0:
        case 1:  return unary(x);
        case 2:
        case 3:  return unary_in_place(x);
        case 4:
        case 5:
        case 6:  return binary(x);
        case 7:
        case 8:  return product(x);
        case 9:  return layout(x);
        case 10: return conversion(x);
        case 11: return by_rows(x);
        case 12: return by_columns(x);
        case 13: return copy(x);
        case 14: return write_part(x);
        default: return rope(x);
    }
}

std::string random_graph::describe() const {
    int n_views = 0, n_in_place = 0, n_copies = 0;
    for (int i = 0; i < graph_->n_nodes; ++i) {
        const ggml_tensor * node = graph_->nodes[i];
        const std::string   op   = stock().base.ggml_op_name(node->op);
        const bool          view = op == "VIEW" || op == "RESHAPE" || op == "PERMUTE" || op == "TRANSPOSE";
        const bool          copy = op == "CPY" || op == "DUP" || op == "CONT";
        n_views += view;
        n_copies += copy;
        n_in_place += node->view_src && !view && !copy;
    }
    return "seed " + std::to_string(params_.seed) + ": " + std::to_string(graph_->n_nodes) + " nodes (" + std::to_string(n_views) +
           " views, " + std::to_string(n_in_place) + " in place, " + std::to_string(n_copies) + " copies), " +
           std::to_string(observed_.size() - state_.size()) + " outputs";
}

void random_graph::fill() const {
    std::mt19937_64 random(params_.seed ^ 0x5eed);
    for (ggml_tensor * t : leaves_) {
        const int64_t     n = t->ne[0] * t->ne[1];
        std::vector<char> bytes(stock().base.ggml_nbytes(t));
        const bool        indices64 = t->type == TYPE_I64;
        const int64_t     shift     = static_cast<int64_t>(random() % STATE_ROWS);
        for (int64_t i = 0; i < n; ++i) {
            if (t->type == TYPE_F32) {
                const float scale                          = t->ne[1] >= width_ && t->ne[1] != STATE_ROWS ? 1.5f / std::sqrt(static_cast<float>(width_)) : 1.0f;
                reinterpret_cast<float *>(bytes.data())[i] = scale * (static_cast<float>(random() >> 40) * 0x1p-23f - 1.0f);
            } else if (indices64) {
                reinterpret_cast<int64_t *>(bytes.data())[i] = (shift + 5 * i) % STATE_ROWS; // distinct: 5 and 24 have no common factor
            } else {
                reinterpret_cast<int32_t *>(bytes.data())[i] = static_cast<int32_t>(random() % rows_);
            }
        }
        if (t->data) { // an input that no node reads has no memory
            stock().ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
        }
    }
}

std::string bytes_of(const ggml_tensor * tensor) {
    // host memory: the tests' backends are CPU ones
    std::string  all;
    const size_t element = stock().base.ggml_type_size(tensor->type);
    for (int64_t i3 = 0; i3 < tensor->ne[3]; ++i3) {
        for (int64_t i2 = 0; i2 < tensor->ne[2]; ++i2) {
            for (int64_t i1 = 0; i1 < tensor->ne[1]; ++i1) {
                const char * row = static_cast<const char *>(tensor->data) + i1 * tensor->nb[1] + i2 * tensor->nb[2] + i3 * tensor->nb[3];
                for (int64_t i0 = 0; i0 < tensor->ne[0]; ++i0) {
                    all.append(row + i0 * tensor->nb[0], element);
                }
            }
        }
    }
    return all;
}

} // namespace ggml_ext::test
