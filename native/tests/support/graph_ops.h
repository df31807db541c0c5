#pragma once
// ggml's graph-building functions that only tests of graphs need, on top of stock_ggml.h.

#include "support/stock_ggml.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace ggml_ext::test {

#define GGML_EXT_TEST_GRAPH_OPS(F)                                                                                      \
    F(ggml_new_tensor_4d, ggml_tensor *, (ggml_context *, int32_t, int64_t, int64_t, int64_t, int64_t) )                \
    F(ggml_view_tensor, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                \
    F(ggml_view_3d, ggml_tensor *,                                                                                      \
      (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t, size_t, size_t, size_t) )                              \
    F(ggml_reshape_1d, ggml_tensor *, (ggml_context *, ggml_tensor *, int64_t) )                                        \
    F(ggml_reshape_3d, ggml_tensor *, (ggml_context *, ggml_tensor *, int64_t, int64_t, int64_t) )                      \
    F(ggml_dup, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                        \
    F(ggml_cast, ggml_tensor *, (ggml_context *, ggml_tensor *, int32_t) )                                              \
    F(ggml_set_rows, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *) )                     \
    F(ggml_set_2d, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, size_t, size_t) )                      \
    F(ggml_set_2d_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, size_t, size_t) )              \
    F(ggml_acc, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, size_t, size_t, size_t, size_t) )         \
    F(ggml_acc_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, size_t, size_t, size_t, size_t) ) \
    F(ggml_sub_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *) )                                 \
    F(ggml_mul_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *) )                                 \
    F(ggml_scale_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, float) )                                       \
    F(ggml_tanh, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                       \
    F(ggml_sigmoid, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                    \
    F(ggml_silu_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                               \
    F(ggml_rms_norm_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, float) )                                    \
    F(ggml_soft_max_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                           \
    F(ggml_repeat, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *) )                                      \
    F(ggml_sum_rows, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                   \
    F(ggml_rope, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t) )                          \
    F(ggml_rope_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, int, int32_t) )                  \
    F(ggml_swiglu, ggml_tensor *, (ggml_context *, ggml_tensor *) )                                                     \
    F(ggml_swiglu_split, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *) )                                \
    F(ggml_opt_step_sgd, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *) )                 \
    F(ggml_map_custom1, ggml_tensor *,                                                                                  \
      (ggml_context *, ggml_tensor *, void (*)(ggml_tensor *, const ggml_tensor *, int, int, void *), int, void *) )

struct graph_ops {
#define GGML_EXT_TEST_DECLARE(name, result, arguments) result(*name) arguments = nullptr;
    GGML_EXT_TEST_GRAPH_OPS(GGML_EXT_TEST_DECLARE)
#undef GGML_EXT_TEST_DECLARE
};

inline const graph_ops & ops() {
    static const graph_ops instance = [] {
        graph_ops o;
        void *    base = dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
#define GGML_EXT_TEST_RESOLVE(name, result, arguments)                                   \
    o.name = reinterpret_cast<result(*) arguments>(base ? dlsym(base, #name) : nullptr); \
    if (!o.name) {                                                                       \
        std::fprintf(stderr, "stock ggml for tests: it has no %s\n", #name);             \
        std::exit(2);                                                                    \
    }
        GGML_EXT_TEST_GRAPH_OPS(GGML_EXT_TEST_RESOLVE)
#undef GGML_EXT_TEST_RESOLVE
        return o;
    }();
    return instance;
}

constexpr int32_t TYPE_F16 = 1, TYPE_I32 = 26, TYPE_I64 = 27; // enum ggml_type; F32: abi/mirror.h

} // namespace ggml_ext::test
