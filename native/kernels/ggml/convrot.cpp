#include "convrot.h"

namespace cpu_ops {

int32_t convrot_group(const void * attrs) {
    ggml_ext_quantize_i8_convrot_attrs a;
    std::memcpy(&a, attrs, sizeof(a));
    return a.group;
}

bool accepts_convrot(int32_t n_src, const ggml_ext_tensor * const * src, int32_t group) {
    if (n_src != 1) {
        return refuse("%d sources, expected 1: X", n_src);
    }
    const ggml_ext_tensor & x = *src[0];
    if (group != 1 && group != 4 && group != 16 && group != 64 && group != 256) {
        return refuse("the group is %d, expected 1, 4, 16, 64 or 256", group);
    }
    if (!is_f32(&x)) {
        return refuse("X has type %s, expected F32", type_name(x.type).text);
    }
    if (row_stride(x) == 0) {
        return refuse_rows("X", x);
    }
    return x.ne[0] % group == 0 || refuse("X has %lld features, expected a multiple of the group %d", static_cast<long long>(x.ne[0]), group);
}

int infer_convrot(int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void * /* user_data */) {
    if (!accepts_convrot(n_src, src, convrot_group(attrs))) {
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    out->type  = TYPE_I8;
    out->ne[0] = static_cast<int64_t>(convrot_size(rows(*src[0]), src[0]->ne[0]));
    out->ne[1] = out->ne[2] = out->ne[3] = 1;
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace cpu_ops
