#pragma once

// What ROPE, sd.rope_apply.v1 and the norm in front of them say, for the CPU's and the CUDA library.

#include "node.h"

namespace cpu_ops {

struct rotation {
    const ggml_ext_tensor * x          = nullptr;
    int64_t                 rot_first  = 0;
    int64_t                 d_rot      = 0;
    bool                    split_half = false; // else interleaved
    const ggml_ext_tensor * pe         = nullptr; // of sd.rope_apply.v1

    // of ROPE
    const ggml_ext_tensor * positions    = nullptr;
    const ggml_ext_tensor * freq_factors = nullptr; // or NULL
    int32_t                 n_ctx_orig   = 0;
    float                   freq_base = 0, freq_scale = 0, ext_factor = 0, attn_factor = 0, beta_fast = 0, beta_slow = 0;
};

// False with the reason where the kernels do not compute the node.
bool read_rope(const ggml_ext_node & node, rotation & out);
bool read_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, rotation & out);
bool read_rotation(const ggml_ext_node & node, rotation & out); // either of them

int infer_rope_apply(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * user_data);

// Are there RMS_NORM -> MUL(weight [d_head]) -> a rotation? False with the reason.
bool read_norm_rotation(const ggml_ext_graph * graph, int32_t first, rotation & out);

template <typename Args> void set_input(const ggml_ext_tensor & x, Args & args) {
    args.x     = floats(&x);
    args.x_nb1 = x.nb[1];
    args.x_nb2 = x.nb[2];
    args.x_nb3 = x.nb[3];
}

// Arguments of either library's kernel, which have these names in common; the angles are kept in `angles`.
template <typename Args, typename Angles> void set_args(const rotation & r, const ggml_ext_tensor & dst, Args & args, Angles & angles) {
    args.d_head    = r.x->ne[0];
    args.n_head    = r.x->ne[1];
    args.L         = r.x->ne[2];
    args.N         = r.x->ne[3];
    args.rot_first = r.rot_first;
    args.d_rot     = r.d_rot;
    args.dst       = static_cast<decltype(args.dst)>(dst.data);
    args.dst_nb1   = dst.nb[1];
    args.dst_nb2   = dst.nb[2];
    args.dst_nb3   = dst.nb[3];
    set_input(*r.x, args);
    if (r.pe != nullptr) {
        args.pe          = floats(r.pe);
        args.pe_pair     = r.pe->nb[2];
        args.pe_position = r.pe->nb[3];
        return;
    }
    angles.positions    = static_cast<const int32_t *>(r.positions->data);
    angles.freq_factors = floats(r.freq_factors);
    angles.n_ctx_orig   = r.n_ctx_orig;
    angles.freq_base    = r.freq_base;
    angles.freq_scale   = r.freq_scale;
    angles.ext_factor   = r.ext_factor;
    angles.attn_factor  = r.attn_factor;
    angles.beta_fast    = r.beta_fast;
    angles.beta_slow    = r.beta_slow;
    args.angles         = &angles;
}

// RMS_NORM and the MUL behind it come first.
template <typename Args> void set_norm(const ggml_ext_node & norm, const ggml_ext_node & mul, Args & args) {
    args.norm   = 1;
    args.eps    = param_f32(norm, 0);
    args.weight = floats(mul.src[1]);
    set_input(*norm.src[0], args);
}

} // namespace cpu_ops
