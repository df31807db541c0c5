#include "rotation.h"

#include "ggml-ext-cpu-ops.h"

namespace cpu_ops {

namespace {

// Parameters of ROPE, by their places in op_params.
enum {
    N_DIMS      = 1,
    MODE        = 2,
    N_CTX_ORIG  = 4,
    FREQ_BASE   = 5,
    FREQ_SCALE  = 6,
    EXT_FACTOR  = 7,
    ATTN_FACTOR = 8,
    BETA_FAST   = 9,
    BETA_SLOW   = 10,
    N_OFFS      = 15
};
enum {
    MODE_NORMAL = 0,
    MODE_NEOX   = 2
};

bool float_rows(const ggml_ext_tensor & x) {
    return is_f32(&x) && elements(x) > 0 && x.nb[0] == sizeof(float) && (x.nb[1] | x.nb[2] | x.nb[3]) % sizeof(float) == 0;
}

bool valid_range(const rotation & r) {
    const int64_t d_head = r.x->ne[0];
    return (r.rot_first >= 0 && r.rot_first % 2 == 0 && r.d_rot >= 2 && r.d_rot % 2 == 0 && r.d_rot <= d_head - r.rot_first) ||
           refuse("features %lld to %lld of %lld are to be rotated, expected an even number from an even place", static_cast<long long>(r.rot_first),
                  static_cast<long long>(r.rot_first) + r.d_rot, static_cast<long long>(d_head));
}

} // namespace

bool read_rope(const ggml_ext_node & node, rotation & out) {
    const ggml_ext_tensor * x         = source(node, 0);
    const ggml_ext_tensor * positions = source(node, 1);
    const ggml_ext_tensor * factors   = source(node, 2);
    const int32_t           mode      = param_i32(node, MODE);
    if (mode != MODE_NORMAL && mode != MODE_NEOX) {
        return refuse("the mode is %d, expected normal (0) or neox (2)", mode);
    }
    if (x == nullptr || !float_rows(*x) || !is_f32(node.dst) || !contiguous(*node.dst) || !same_shape(*x, *node.dst)) {
        return refuse("the input is not F32 with successive elements, or the output not contiguous F32 of its shape");
    }
    if (positions == nullptr || positions->type != TYPE_I32 || !contiguous(*positions) || elements(*positions) != x->ne[2]) {
        return refuse("the positions are not contiguous I32, one for each of ne2");
    }
    if (factors != nullptr && (!is_f32(factors) || !contiguous(*factors) || elements(*factors) < param_i32(node, N_DIMS) / 2)) {
        return refuse("the frequency factors are not contiguous F32, one a pair");
    }
    out.x            = x;
    out.rot_first    = param_i32(node, N_OFFS);
    out.d_rot        = param_i32(node, N_DIMS);
    out.split_half   = mode == MODE_NEOX;
    out.positions    = positions;
    out.freq_factors = factors;
    out.n_ctx_orig   = param_i32(node, N_CTX_ORIG);
    out.freq_base    = param_f32(node, FREQ_BASE);
    out.freq_scale   = param_f32(node, FREQ_SCALE);
    out.ext_factor   = param_f32(node, EXT_FACTOR);
    out.attn_factor  = param_f32(node, ATTN_FACTOR);
    out.beta_fast    = param_f32(node, BETA_FAST);
    out.beta_slow    = param_f32(node, BETA_SLOW);
    if (!valid_range(out)) {
        return false;
    }
    const bool yarn = out.ext_factor != 0;
    return (out.freq_base > 0 && out.freq_scale > 0 && (!yarn || (out.n_ctx_orig > 0 && out.beta_fast > 0 && out.beta_slow > 0))) ||
           refuse("a frequency or YaRN parameter is not positive");
}

bool read_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attributes, rotation & out) {
    ggml_ext_rope_apply_attrs attrs;
    std::memcpy(&attrs, attributes, sizeof(attrs));
    if (n_src != 2) {
        return refuse("%d sources, expected 2: x and pe", n_src);
    }
    if (attrs.pairs != GGML_EXT_ROPE_INTERLEAVED && attrs.pairs != GGML_EXT_ROPE_SPLIT_HALF) {
        return refuse("pairs is %d, expected 0 (interleaved) or 1 (split halves)", attrs.pairs);
    }
    const ggml_ext_tensor & x  = *src[0];
    const ggml_ext_tensor & pe = *src[1];
    if (!is_f32(&x)) {
        return refuse("x has type %s, expected F32", type_name(x.type).text);
    }
    if (!float_rows(x)) {
        return refuse_rows("x", x);
    }
    if (!is_f32(&pe) || pe.ne[0] != 2 || pe.ne[1] != 2) {
        return refuse("pe has type %s and shape [%lld, %lld, ...], expected F32 [2, 2, pairs, positions]", type_name(pe.type).text,
                      static_cast<long long>(pe.ne[0]), static_cast<long long>(pe.ne[1]));
    }
    if (!float_rows(pe) || pe.nb[1] != 2 * sizeof(float)) {
        return refuse("the four values of a matrix of pe do not follow one another (strides of %zu and %zu bytes, expected 4 and 8): those of a CONT do",
                      pe.nb[0], pe.nb[1]);
    }
    if (pe.ne[3] != x.ne[2]) {
        return refuse("pe has %lld positions, expected %lld as x has", static_cast<long long>(pe.ne[3]), static_cast<long long>(x.ne[2]));
    }
    out.x          = &x;
    out.rot_first  = attrs.first;
    out.d_rot      = 2 * pe.ne[2];
    out.split_half = attrs.pairs == GGML_EXT_ROPE_SPLIT_HALF;
    out.pe         = &pe;
    return valid_range(out);
}

bool read_rotation(const ggml_ext_node & node, rotation & out) {
    return is_op(&node, "ROPE")                   ? read_rope(node, out)
           : is_op(&node, GGML_EXT_OP_ROPE_APPLY) ? read_rope_apply(node.n_src, node.src, node.attrs, out)
                                                  : refuse("no rotation");
}

int infer_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * /* user_data */) {
    rotation r;
    if (!read_rope_apply(n_src, src, attrs, r)) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type = TYPE_F32;
    std::memcpy(out->ne, src[0]->ne, sizeof(out->ne));
    return GGML_EXT_STATUS_SUCCESS;
}

bool read_norm_rotation(const ggml_ext_graph * graph, int32_t first, rotation & out) {
    const ggml_ext_node * norm = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * mul  = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_node * rope = ggml_ext_graph_node(graph, first + 2);
    if (!is_op(mul, "MUL") || source(*mul, 0)->tensor != norm->dst->tensor || rope == nullptr || source(*rope, 0) == nullptr ||
        source(*rope, 0)->tensor != mul->dst->tensor) {
        return refuse("no RMS_NORM -> MUL -> rotation");
    }
    if (!read_rotation(*rope, out)) {
        return false;
    }
    for (int i = 1; i < rope->n_src; ++i) { // a group's intermediates are never written
        if (rope->src[i] != nullptr && (rope->src[i]->tensor == norm->dst->tensor || rope->src[i]->tensor == mul->dst->tensor)) {
            return refuse("what is rotated is also read for the angles");
        }
    }
    const ggml_ext_tensor & x = *norm->src[0];
    if (!is_f32(&x) || !dense_rows(x)) {
        return refuse("the input is not F32 with dense rows");
    }
    if (!is_vector_weight(source(*mul, 1), x.ne[0])) {
        return refuse("the weight is no kept F32 vector of %lld elements", static_cast<long long>(x.ne[0]));
    }
    return param_f32(*norm, 0) >= 0 || refuse("eps is %g", static_cast<double>(param_f32(*norm, 0)));
}

} // namespace cpu_ops
