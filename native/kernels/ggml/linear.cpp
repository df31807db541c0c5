#include "linear.h"

namespace cpu_ops {

namespace {

long long ll(int64_t v) { return static_cast<long long>(v); }

// A contiguous F32 vector, [n], [1, n] or (where `one`) [1].
bool is_vector(const char * name, const ggml_ext_tensor & t, int64_t n, bool one) {
    const bool shape = (t.ne[0] == n && elements(t) == n) || (t.ne[0] == 1 && t.ne[1] == n && elements(t) == n) || (one && elements(t) == 1);
    if (t.type != TYPE_F32) {
        return refuse("%s has type %s, expected F32", name, type_name(t.type).text);
    }
    if (!shape || !contiguous(t)) {
        return refuse("%s is [%lld, %lld, %lld, %lld], expected contiguous [%lld]%s", name, ll(t.ne[0]), ll(t.ne[1]), ll(t.ne[2]), ll(t.ne[3]),
                      ll(n), one ? " or [1]" : "");
    }
    return true;
}

} // namespace

bool read_linear(int32_t n_src, const ggml_ext_tensor * const * src, const void * attributes, linear & out) {
    ggml_ext_linear_i8_attrs attrs;
    std::memcpy(&attrs, attributes, sizeof(attrs));
    constexpr int32_t all = GGML_EXT_LINEAR_I8_W_SCALE | GGML_EXT_LINEAR_I8_X_SCALE | GGML_EXT_LINEAR_I8_BIAS;
    if ((attrs.sources & ~all) != 0 || attrs.packed_rows < 0) {
        return refuse("sources is %d and packed_rows %d, expected 0 to %d and at least 0", attrs.sources, attrs.packed_rows, all);
    }
    const int32_t expected = 2 + __builtin_popcount(static_cast<unsigned>(attrs.sources));
    if (n_src != expected) {
        return refuse("%d sources, expected %d: W, X and what the attribute sources (%d) names", n_src, expected, attrs.sources);
    }
    int32_t next = 2;
    out.w        = src[0];
    out.x        = src[1];
    out.w_scale  = attrs.sources & GGML_EXT_LINEAR_I8_W_SCALE ? src[next++] : nullptr;
    out.x_scale  = attrs.sources & GGML_EXT_LINEAR_I8_X_SCALE ? src[next++] : nullptr;
    out.bias     = attrs.sources & GGML_EXT_LINEAR_I8_BIAS ? src[next++] : nullptr;
    out.packed   = attrs.packed_rows > 0;
    out.K        = out.w->ne[0];
    out.N        = out.w->ne[1];
    if (out.w->type != TYPE_I8 || out.w->ne[2] != 1 || out.w->ne[3] != 1) {
        return refuse("W has type %s and shape [%lld, %lld, %lld, %lld], expected an I8 matrix", type_name(out.w->type).text, ll(out.K), ll(out.N),
                      ll(out.w->ne[2]), ll(out.w->ne[3]));
    }
    if (!dense_rows(*out.w)) {
        return refuse_rows("W", *out.w);
    }
    if (out.K > LINEAR_I8_MAX_K) {
        return refuse("K is %lld, expected at most %lld: the sum must fit into int32", ll(out.K), ll(LINEAR_I8_MAX_K));
    }
    const ggml_ext_tensor & x = *out.x;
    if (x.type != TYPE_I8 && (out.packed || x.type != TYPE_F32)) {
        return refuse("X has type %s, expected I8%s", type_name(x.type).text, out.packed ? " where it is packed" : " or F32");
    }
    if (out.packed) {
        out.M              = attrs.packed_rows;
        const int64_t size = static_cast<int64_t>(convrot_size(out.M, out.K));
        if (x.ne[0] != size || elements(x) != size || !contiguous(x)) {
            return refuse("the packed X is [%lld, %lld], expected contiguous [%lld] for %lld rows of %lld features", ll(x.ne[0]), ll(x.ne[1]), ll(size),
                          ll(out.M), ll(out.K));
        }
    } else {
        out.M = rows(x);
        if (x.ne[0] != out.K) {
            return refuse("X has %lld features, expected %lld as W has", ll(x.ne[0]), ll(out.K));
        }
        if (row_stride(x) == 0) {
            return refuse_rows("X", x);
        }
    }
    if (out.x_scale != nullptr && (out.packed || x.type == TYPE_F32)) {
        return refuse("X_scale is there, but X %s", out.packed ? "is packed and brings its own" : "is F32 and gets its own");
    }
    return (out.w_scale == nullptr || is_vector("W_scale", *out.w_scale, out.N, true)) &&
           (out.x_scale == nullptr || is_vector("X_scale", *out.x_scale, out.M, true)) &&
           (out.bias == nullptr || is_vector("bias", *out.bias, out.N, false));
}

int infer_linear(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * /* user_data */) {
    linear l;
    if (!read_linear(n_src, src, attrs, l)) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type  = TYPE_F32;
    out->ne[0] = l.N;
    out->ne[1] = l.packed ? l.M : l.x->ne[1];
    out->ne[2] = l.packed ? 1 : l.x->ne[2];
    out->ne[3] = l.packed ? 1 : l.x->ne[3];
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace cpu_ops
