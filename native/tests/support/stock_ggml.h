#pragma once
// The stock ggml that the tests run against, from the folder in GGML_EXT_TEST_GGML_DIR: libggml-base, libggml and the CPU
// backend, loaded once in a test program, and the functions that tests need on top of those in abi/ggml.h.

#include "abi/ggml.h"

#include <string>

namespace ggml_ext::test {

// clang-format off
#define GGML_EXT_TEST_FUNCTIONS(F)                                                                                          \
    F(ggml_backend_load_all_from_path, void, (const char *))                                                                \
    F(ggml_backend_reg_count, size_t, ())                                                                                   \
    F(ggml_backend_dev_count, size_t, ())                                                                                   \
    F(ggml_backend_dev_get, ggml_backend_device *, (size_t))                                                                \
    F(ggml_backend_dev_by_type, ggml_backend_device *, (int32_t))                                                           \
    F(ggml_backend_alloc_ctx_tensors, ggml_backend_buffer *, (ggml_context *, ggml_backend *))                              \
    F(ggml_backend_tensor_set, void, (ggml_tensor *, const void *, size_t, size_t))                                         \
    F(ggml_backend_tensor_get, void, (const ggml_tensor *, void *, size_t, size_t))                                         \
    F(ggml_backend_sched_alloc_graph, bool, (ggml_backend_sched *, ggml_cgraph *))                                          \
    F(ggml_backend_sched_graph_compute, int32_t, (ggml_backend_sched *, ggml_cgraph *))                                     \
    F(ggml_backend_sched_reset, void, (ggml_backend_sched *))                                                               \
    F(ggml_backend_sched_get_n_splits, int, (ggml_backend_sched *))                                                         \
    F(ggml_backend_sched_get_n_copies, int, (ggml_backend_sched *))                                                         \
    F(ggml_backend_sched_get_buffer_size, size_t, (ggml_backend_sched *, ggml_backend *))                                   \
    F(ggml_backend_sched_set_tensor_backend, void, (ggml_backend_sched *, ggml_tensor *, ggml_backend *))                   \
    F(ggml_backend_sched_set_eval_callback, void,                                                                           \
      (ggml_backend_sched *, bool (*)(ggml_tensor *, bool, void *), void *))                                                \
    F(ggml_gallocr_new, struct ggml_gallocr *, (ggml_backend_buffer_type *))                                                \
    F(ggml_gallocr_free, void, (struct ggml_gallocr *))                                                                     \
    F(ggml_gallocr_alloc_graph, bool, (struct ggml_gallocr *, ggml_cgraph *))                                               \
    F(ggml_graph_add_node, void, (ggml_cgraph *, ggml_tensor *))                                                            \
    F(ggml_new_tensor_1d, ggml_tensor *, (ggml_context *, int32_t, int64_t))                                                \
    F(ggml_new_tensor_2d, ggml_tensor *, (ggml_context *, int32_t, int64_t, int64_t))                                       \
    F(ggml_new_tensor_3d, ggml_tensor *, (ggml_context *, int32_t, int64_t, int64_t, int64_t))                              \
    F(ggml_add_inplace, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                      \
    F(ggml_sub, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                              \
    F(ggml_mul, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                              \
    F(ggml_sqr, ggml_tensor *, (ggml_context *, ggml_tensor *))                                                             \
    F(ggml_silu, ggml_tensor *, (ggml_context *, ggml_tensor *))                                                            \
    F(ggml_scale, ggml_tensor *, (ggml_context *, ggml_tensor *, float))                                                    \
    F(ggml_norm, ggml_tensor *, (ggml_context *, ggml_tensor *, float))                                                     \
    F(ggml_rms_norm, ggml_tensor *, (ggml_context *, ggml_tensor *, float))                                                 \
    F(ggml_soft_max, ggml_tensor *, (ggml_context *, ggml_tensor *))                                                        \
    F(ggml_cpy, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                              \
    F(ggml_cont, ggml_tensor *, (ggml_context *, ggml_tensor *))                                                            \
    F(ggml_concat, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *, int))                                      \
    F(ggml_reshape_2d, ggml_tensor *, (ggml_context *, ggml_tensor *, int64_t, int64_t))                                    \
    F(ggml_view_2d, ggml_tensor *, (ggml_context *, ggml_tensor *, int64_t, int64_t, size_t, size_t))                       \
    F(ggml_permute, ggml_tensor *, (ggml_context *, ggml_tensor *, int, int, int, int))                                     \
    F(ggml_transpose, ggml_tensor *, (ggml_context *, ggml_tensor *))                                                       \
    F(ggml_get_rows, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                         \
    F(ggml_log_set, void, (void (*)(int32_t, const char *, void *), void *))
// clang-format on

struct stock_ggml {
    std::string    directory;
    std::string    base_path;
    std::string    ggml_path;
    abi::functions base; // as abi::load resolves them, here by a plain dlsym
#define GGML_EXT_TEST_DECLARE(name, result, arguments) result(*name) arguments = nullptr;
    GGML_EXT_TEST_FUNCTIONS(GGML_EXT_TEST_DECLARE)
#undef GGML_EXT_TEST_DECLARE
    ggml_backend_device * cpu = nullptr; // the CPU device

    ggml_ext_load_params load_params() const { return {sizeof(ggml_ext_load_params), base_path.c_str(), ggml_path.c_str()}; }
};

// Loads it at the first call. Ends the test program with a message where that is not possible.
const stock_ggml & stock();

} // namespace ggml_ext::test
