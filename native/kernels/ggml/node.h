#pragma once

// What the predicates ask of nodes and tensors. Types by their numbers, which ggml never changes; operations by name.

#include "ggml-ext.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace cpu_ops {

constexpr int32_t TYPE_F32 = 0;
constexpr int32_t TYPE_F16 = 1;
constexpr int32_t TYPE_I8  = 24;
constexpr int32_t TYPE_I32 = 26;

#if defined(__MINGW32__)
#    define CPU_OPS_FORMAT gnu_printf // C99's formats, not those of Windows's old C library
#else
#    define CPU_OPS_FORMAT printf
#endif

// A refusal with its reason: 0 for supports, preferred and match.
__attribute__((format(CPU_OPS_FORMAT, 1, 2))) inline int32_t refuse(const char * format, ...) {
    char    text[256];
    va_list args;
    va_start(args, format);
    std::vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    ggml_ext_set_error(text);
    return 0;
}

// A type as messages name it: ggml's name for those that kernels know, else ggml's number.
struct type_name {
    char text[16];

    explicit type_name(int32_t type) {
        struct known {
            int32_t      type;
            const char * name;
        };
        for (const known & k : {known{TYPE_F32, "F32"}, {TYPE_F16, "F16"}, {TYPE_I8, "I8"}, {TYPE_I32, "I32"}}) {
            if (k.type == type) {
                std::snprintf(text, sizeof(text), "%s", k.name);
                return;
            }
        }
        std::snprintf(text, sizeof(text), "%d", type);
    }
};

inline bool is_op(const ggml_ext_node * node, const char * op) { return node != nullptr && std::strcmp(node->op, op) == 0; }

// Whether a UNARY or GLU node computes that function.
inline bool is_function(const ggml_ext_node & node, const char * name) { return node.function != nullptr && std::strcmp(node.function, name) == 0; }

inline const ggml_ext_tensor * source(const ggml_ext_node & node, int i) { return i < node.n_src ? node.src[i] : nullptr; }

// Whether the node is there and a UNARY of that function over x.
inline bool is_unary_of(const ggml_ext_node * node, const char * name, const ggml_ext_tensor & x) {
    return is_op(node, "UNARY") && is_function(*node, name) && source(*node, 0)->tensor == x.tensor;
}

inline int64_t elements(const ggml_ext_tensor & t) { return t.ne[0] * t.ne[1] * t.ne[2] * t.ne[3]; }

inline int64_t rows(const ggml_ext_tensor & t) { return t.ne[1] * t.ne[2] * t.ne[3]; }

inline bool same_shape(const ggml_ext_tensor & a, const ggml_ext_tensor & b) { return std::memcmp(a.ne, b.ne, sizeof(a.ne)) == 0; }

inline size_t element_size(const ggml_ext_tensor & t) { return t.type == TYPE_I8 ? 1 : t.type == TYPE_F16 ? 2
                                                                                                          : sizeof(float); }

// Whether the elements of a row follow one another, and rows do not overlap.
inline bool dense_rows(const ggml_ext_tensor & t) {
    const size_t row = static_cast<size_t>(t.ne[0]) * element_size(t);
    bool         ok  = elements(t) > 0 && t.nb[0] == element_size(t);
    for (int d = 1; d < GGML_EXT_MAX_DIMS; ++d) {
        ok = ok && (t.ne[d] == 1 || (t.nb[d] >= row && t.nb[d] % element_size(t) == 0));
    }
    return ok;
}

// Bytes between successive rows where all rows, over every dimension, have one distance; else 0.
inline size_t row_stride(const ggml_ext_tensor & t) {
    if (!dense_rows(t)) {
        return 0;
    }
    size_t  stride = static_cast<size_t>(t.ne[0]) * element_size(t);
    int64_t count  = 1;
    for (int d = 1; d < GGML_EXT_MAX_DIMS; ++d) {
        if (t.ne[d] == 1) {
            continue;
        }
        if (count == 1) {
            stride = t.nb[d];
        } else if (t.nb[d] != stride * static_cast<size_t>(count)) {
            return 0;
        }
        count *= t.ne[d];
    }
    return stride;
}

inline bool contiguous(const ggml_ext_tensor & t) { return row_stride(t) == static_cast<size_t>(t.ne[0]) * element_size(t); }

inline bool is_f32(const ggml_ext_tensor * t) { return t != nullptr && t->type == TYPE_F32; }

// The reason where row_stride is 0.
inline int32_t refuse_rows(const char * name, const ggml_ext_tensor & t) {
    if (elements(t) == 0) {
        return refuse("%s has no elements", name);
    }
    if (t.nb[0] != element_size(t)) {
        return refuse("the elements in a row of %s are %zu bytes apart, expected successive ones (%zu bytes): a CONT of it has them", name, t.nb[0],
                      element_size(t));
    }
    return refuse("the rows of %s are not evenly spaced (strides of %zu, %zu and %zu bytes): those of a CONT of it are", name, t.nb[1], t.nb[2],
                  t.nb[3]);
}

// A leaf that no graph is expected to write: not an input, a parameter or a scheduler's copy ("backend#tensor#copy").
inline bool is_weight(const ggml_ext_tensor & t) {
    return std::strcmp(t.op, "NONE") == 0 && t.view_src == nullptr && t.flags == 0 && std::strchr(t.name, '#') == nullptr;
}

// A one-dimensional F32 weight of n elements.
inline bool is_vector_weight(const ggml_ext_tensor * t, int64_t n) {
    return is_f32(t) && is_weight(*t) && t->ne[0] == n && elements(*t) == n && contiguous(*t);
}

inline bool overlap(const ggml_ext_tensor & a, const ggml_ext_tensor & b) {
    const char * a0 = static_cast<const char *>(a.data);
    const char * b0 = static_cast<const char *>(b.data);
    return a0 < b0 + b.nbytes && b0 < a0 + a.nbytes;
}

inline float param_f32(const ggml_ext_node & node, int i) {
    float value;
    std::memcpy(&value, static_cast<const char *>(node.op_params) + 4 * i, sizeof(value));
    return value;
}

inline int32_t param_i32(const ggml_ext_node & node, int i) {
    int32_t value;
    std::memcpy(&value, static_cast<const char *>(node.op_params) + 4 * i, sizeof(value));
    return value;
}

inline const float * floats(const ggml_ext_tensor * t) { return t == nullptr ? nullptr : static_cast<const float *>(t->data); }

} // namespace cpu_ops
