#include "plan/effects.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace ggml_ext::plan {

namespace {

const char * const no_work[] = {"NONE", "RESHAPE", "VIEW", "PERMUTE", "TRANSPOSE"};

// Operations that write their result and nothing else, be it owned or a view. Not here, so unknown: callbacks (MAP_CUSTOM*,
// CUSTOM), optimizer steps (they write the moments among their sources).
const char * const writes_result_only[] = {
    // copies and layout
    "DUP",
    "CPY",
    "CONT",
    "SET",
    "SET_ROWS",
    "GET_ROWS",
    "GET_ROWS_BACK",
    "REPEAT",
    "REPEAT_BACK",
    "CONCAT",
    "PAD",
    "PAD_REFLECT_1D",
    "ROLL",
    "UPSCALE",
    "DIAG",
    "TRI",
    "WIN_PART",
    "WIN_UNPART",
    "GET_REL_POS",
    "ARANGE",
    "FILL",
    "TIMESTEP_EMBEDDING",
    // element by element
    "ADD",
    "ADD_ID",
    "ADD1",
    "ACC",
    "ADD_REL_POS",
    "SUB",
    "MUL",
    "DIV",
    "SQR",
    "SQRT",
    "LOG",
    "SIN",
    "COS",
    "SCALE",
    "CLAMP",
    "LEAKY_RELU",
    "UNARY",
    "GLU",
    "SILU_BACK",
    "DIAG_MASK_INF",
    "DIAG_MASK_ZERO",
    "ROPE",
    "ROPE_BACK",
    // reductions, norms, order
    "SUM",
    "SUM_ROWS",
    "CUMSUM",
    "MEAN",
    "ARGMAX",
    "COUNT_EQUAL",
    "ARGSORT",
    "TOP_K",
    "NORM",
    "RMS_NORM",
    "RMS_NORM_BACK",
    "GROUP_NORM",
    "L2_NORM",
    "SOFT_MAX",
    "SOFT_MAX_BACK",
    "CROSS_ENTROPY_LOSS",
    "CROSS_ENTROPY_LOSS_BACK",
    // products, convolutions, attention, recurrences
    "MUL_MAT",
    "MUL_MAT_ID",
    "OUT_PROD",
    "SOLVE_TRI",
    "CONV_TRANSPOSE_1D",
    "CONV_TRANSPOSE_2D",
    "CONV_2D",
    "CONV_2D_DW",
    "CONV_3D",
    "IM2COL",
    "IM2COL_BACK",
    "IM2COL_3D",
    "COL2IM_1D",
    "POOL_1D",
    "POOL_2D",
    "POOL_2D_BACK",
    "FLASH_ATTN_EXT",
    "FLASH_ATTN_BACK",
    "SSM_CONV",
    "SSM_SCAN",
    "RWKV_WKV6",
    "RWKV_WKV7",
    "GATED_LINEAR_ATTN",
    "GATED_DELTA_NET",
    "LIGHTNING_INDEXER",
    "DSV4_HC_COMB",
    "DSV4_HC_PRE",
    "DSV4_HC_POST",
};

template <size_t N> bool contains(const char * const (&names)[N], const char * name) {
    return std::any_of(std::begin(names), std::end(names), [name](const char * n) { return std::strcmp(n, name) == 0; });
}

struct byte_range {
    uintptr_t begin;
    uintptr_t end;
};

bool overlap(byte_range a, byte_range b) {
    return a.begin < b.end && b.begin < a.end;
}

uintptr_t offset_in_owner(const ggml_tensor * tensor) {
    uintptr_t offset = 0;
    for (; tensor->view_src; tensor = tensor->view_src) {
        offset += tensor->view_offs;
    }
    return offset;
}

} // namespace

op_table::op_table(const abi::ggml & g, const void * marker) : ggml_(&g), marker_(marker), by_id_(g.op_names.size(), effect::unknown) {
    for (int32_t id = 0; id < g.n_ops(); ++id) {
        const char * name = g.op_name(id);
        if (contains(no_work, name)) {
            by_id_[id] = effect::none;
        } else if (contains(writes_result_only, name)) {
            by_id_[id] = effect::pure;
        }
    }
}

effect op_table::effect_of(const ggml_tensor * node) const {
    effect e = node->op >= 0 && node->op < ggml_->n_ops() ? by_id_[node->op] : effect::unknown;
    if (e == effect::unknown && marker_ && node->op == ggml_->op.custom) {
        // ggml keeps the callback at the start of op_params
        if (std::memcmp(node->op_params, &marker_, sizeof(marker_)) == 0) {
            e = effect::pure;
        }
    }
    return e == effect::pure && node->view_src ? effect::write_view : e;
}

const char * op_table::name_of(const ggml_tensor * node) const {
    const char * name = ggml_->op_name(node->op);
    return name != nullptr ? name : "an operation that ggml has no name for";
}

const ggml_tensor * owner(const ggml_tensor * tensor) {
    while (tensor->view_src) {
        tensor = tensor->view_src;
    }
    return tensor;
}

bool may_alias(const abi::ggml & g, const ggml_tensor * a, const ggml_tensor * b) {
    const ggml_tensor * owner_a = owner(a);
    const ggml_tensor * owner_b = owner(b);
    if (owner_a != owner_b && (!owner_a->data || !owner_b->data)) {
        return false;
    }
    // a view that was made before its owner had an address has none of its own yet
    const uintptr_t begin_a = offset_in_owner(a) + reinterpret_cast<uintptr_t>(owner_a->data);
    const uintptr_t begin_b = offset_in_owner(b) + reinterpret_cast<uintptr_t>(owner_b->data);
    return overlap({begin_a, begin_a + g.fn.ggml_nbytes(a)}, {begin_b, begin_b + g.fn.ggml_nbytes(b)});
}

} // namespace ggml_ext::plan
