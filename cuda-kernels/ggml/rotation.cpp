#include "rotation.h"

namespace cuda_ops {

namespace {

// Parameters of ROPE, by their places in op_params.
enum { N_DIMS = 1, MODE = 2, N_CTX_ORIG = 4, FREQ_BASE = 5, FREQ_SCALE = 6, EXT_FACTOR = 7, ATTN_FACTOR = 8, BETA_FAST = 9, BETA_SLOW = 10, N_OFFS = 15 };
enum { MODE_NORMAL = 0, MODE_NEOX = 2 };

void set_shape(const ggml_ext_tensor & x, ggml_ext_cuda_rope_args & args) {
    args.d_head = x.ne[0];
    args.n_head = x.ne[1];
    args.L      = x.ne[2];
    args.N      = x.ne[3];
    args.scale  = 1.0f;
    set_input(x, args);
}

bool float_rows(const ggml_ext_tensor & x) {
    return is_f32(&x) && elements(x) > 0 && x.nb[0] == sizeof(float) && (x.nb[1] | x.nb[2] | x.nb[3]) % sizeof(float) == 0;
}

bool valid_range(const ggml_ext_cuda_rope_args & a) {
    return (a.rot_first >= 0 && a.rot_first % 2 == 0 && a.d_rot >= 2 && a.d_rot % 2 == 0 && a.d_rot <= a.d_head - a.rot_first &&
            a.d_rot <= GGML_EXT_CUDA_ROPE_MAX_D_ROT) ||
           refuse("features %lld to %lld of %lld are to be rotated, expected an even number, at most %d, from an even place",
                  static_cast<long long>(a.rot_first), static_cast<long long>(a.rot_first + a.d_rot), static_cast<long long>(a.d_head),
                  GGML_EXT_CUDA_ROPE_MAX_D_ROT);
}

} // namespace

void set_input(const ggml_ext_tensor & x, ggml_ext_cuda_rope_args & args) {
    args.x     = floats(&x);
    args.x_nb1 = x.nb[1];
    args.x_nb2 = x.nb[2];
    args.x_nb3 = x.nb[3];
}

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
    set_shape(*x, out.args);
    out.args.rot_first = param_i32(node, N_OFFS);
    out.args.d_rot     = param_i32(node, N_DIMS);
    out.args.pairs     = mode == MODE_NEOX ? GGML_EXT_CUDA_ROPE_SPLIT_HALF : GGML_EXT_CUDA_ROPE_INTERLEAVED;
    if (!valid_range(out.args)) {
        return false;
    }
    if (factors != nullptr && (!is_f32(factors) || !contiguous(*factors) || elements(*factors) < out.args.d_rot / 2)) {
        return refuse("the frequency factors are not contiguous F32, one a pair");
    }
    ggml_ext_cuda_rope_angles & a = out.angles;
    a.positions    = static_cast<const int32_t *>(positions->data);
    a.freq_factors = floats(factors);
    a.n_ctx_orig   = param_i32(node, N_CTX_ORIG);
    a.freq_base    = param_f32(node, FREQ_BASE);
    a.freq_scale   = param_f32(node, FREQ_SCALE);
    a.ext_factor   = param_f32(node, EXT_FACTOR);
    a.attn_factor  = param_f32(node, ATTN_FACTOR);
    a.beta_fast    = param_f32(node, BETA_FAST);
    a.beta_slow    = param_f32(node, BETA_SLOW);
    const bool yarn = a.ext_factor != 0;
    return (a.freq_base > 0 && a.freq_scale > 0 && (!yarn || (a.n_ctx_orig > 0 && a.beta_fast > 0 && a.beta_slow > 0))) ||
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
    if (!float_rows(x)) {
        return refuse("x has type %d, expected F32 (0) with successive elements in a row", x.type);
    }
    if (!float_rows(pe) || pe.ne[0] != 2 || pe.ne[1] != 2 || pe.nb[1] != 2 * sizeof(float)) {
        return refuse("pe has type %d and shape [%lld, %lld, ...], expected F32 (0) [2, 2, pairs, positions] with successive matrices", pe.type,
                      static_cast<long long>(pe.ne[0]), static_cast<long long>(pe.ne[1]));
    }
    if (pe.ne[3] != x.ne[2]) {
        return refuse("pe has %lld positions, expected %lld as x has", static_cast<long long>(pe.ne[3]), static_cast<long long>(x.ne[2]));
    }
    set_shape(x, out.args);
    out.args.rot_first   = attrs.first;
    out.args.d_rot       = 2 * pe.ne[2];
    out.args.pairs       = attrs.pairs == GGML_EXT_ROPE_SPLIT_HALF ? GGML_EXT_CUDA_ROPE_SPLIT_HALF : GGML_EXT_CUDA_ROPE_INTERLEAVED;
    out.args.pe          = floats(&pe);
    out.args.pe_pair     = pe.nb[2];
    out.args.pe_position = pe.nb[3];
    return valid_range(out.args);
}

bool read_rotation(const ggml_ext_node & node, rotation & out) {
    return is_op(&node, "ROPE") ? read_rope(node, out)
                                : is_op(&node, GGML_EXT_OP_ROPE_APPLY) ? read_rope_apply(node.n_src, node.src, node.attrs, out) : refuse("no rotation");
}

int launch_rotation(const ggml_ext_exec_params & params, const device & d, rotation & r, const ggml_ext_tensor & dst) {
    void * stream = nullptr;
    if (const int status = stream_of(params, d, stream); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    r.args.dst     = dst.data;
    r.args.dst_nb1 = dst.nb[1];
    r.args.dst_nb2 = dst.nb[2];
    r.args.dst_nb3 = dst.nb[3];
    r.args.angles  = &r.angles;
    return status_of(ggml_ext_cuda_rope(&r.args, stream));
}

int execute_rotation(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node & node = *params->nodes[0];
    rotation              r;
    return read_rotation(node, r) ? launch_rotation(*params, *static_cast<const device *>(user_data), r, *node.dst) : static_cast<int>(GGML_EXT_STATUS_FAILED);
}

} // namespace cuda_ops
