#pragma once
// The loaded ggml: its public functions, found by name; what probing found; ids of operations by name.

#include "ggml-ext.h"

#include "abi/mirror.h"

#include <string>
#include <vector>

namespace ggml_ext::abi {

struct ggml_init_params_mirror {
    size_t mem_size;
    void * mem_buffer;
    bool   no_alloc;
};

// libggml-base. Names as in ggml's headers, without any of them.
// clang-format off
#define GGML_EXT_ABI_FUNCTIONS(F)                                                                                   \
    F(ggml_init, ggml_context *, (ggml_init_params_mirror))                                                         \
    F(ggml_free, void, (ggml_context *))                                                                            \
    F(ggml_used_mem, size_t, (const ggml_context *))                                                                \
    F(ggml_get_mem_size, size_t, (const ggml_context *))                                                            \
    F(ggml_get_no_alloc, bool, (ggml_context *))                                                                    \
    F(ggml_tensor_overhead, size_t, ())                                                                             \
    F(ggml_graph_overhead_custom, size_t, (size_t, bool))                                                           \
    F(ggml_op_name, const char *, (int32_t))                                                                        \
    F(ggml_unary_op_name, const char *, (int32_t))                                                                  \
    F(ggml_glu_op_name, const char *, (int32_t))                                                                    \
    F(ggml_type_name, const char *, (int32_t))                                                                      \
    F(ggml_type_size, size_t, (int32_t))                                                                            \
    F(ggml_blck_size, int64_t, (int32_t))                                                                           \
    F(ggml_nbytes, size_t, (const ggml_tensor *))                                                                   \
    F(ggml_is_contiguous, bool, (const ggml_tensor *))                                                              \
    F(ggml_new_tensor, ggml_tensor *, (ggml_context *, int32_t, int, const int64_t *))                              \
    F(ggml_new_tensor_4d, ggml_tensor *, (ggml_context *, int32_t, int64_t, int64_t, int64_t, int64_t))             \
    F(ggml_set_name, ggml_tensor *, (ggml_tensor *, const char *))                                                  \
    F(ggml_set_input, void, (ggml_tensor *))                                                                        \
    F(ggml_set_output, void, (ggml_tensor *))                                                                       \
    F(ggml_add, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                      \
    F(ggml_mul_mat, ggml_tensor *, (ggml_context *, ggml_tensor *, ggml_tensor *))                                  \
    F(ggml_view_1d, ggml_tensor *, (ggml_context *, ggml_tensor *, int64_t, size_t))                                \
    F(ggml_custom_4d, ggml_tensor *,                                                                                \
      (ggml_context *, int32_t, int64_t, int64_t, int64_t, int64_t, ggml_tensor **, int,                            \
       void (*)(ggml_tensor *, int, int, void *), int, void *))                                                     \
    F(ggml_new_graph_custom, ggml_cgraph *, (ggml_context *, size_t, bool))                                         \
    F(ggml_build_forward_expand, void, (ggml_cgraph *, ggml_tensor *))                                              \
    F(ggml_graph_n_nodes, int, (ggml_cgraph *))                                                                     \
    F(ggml_graph_size, int, (ggml_cgraph *))                                                                        \
    F(ggml_graph_nodes, ggml_tensor **, (ggml_cgraph *))                                                            \
    F(ggml_graph_node, ggml_tensor *, (ggml_cgraph *, int))                                                         \
    F(ggml_backend_dev_name, const char *, (ggml_backend_device *))                                                 \
    F(ggml_backend_dev_type, int32_t, (ggml_backend_device *))                                                      \
    F(ggml_backend_dev_memory, void, (ggml_backend_device *, size_t *, size_t *))                                    \
    F(ggml_backend_dev_get_props, void, (ggml_backend_device *, void *))                                            \
    F(ggml_backend_dev_init, ggml_backend *, (ggml_backend_device *, const char *))                                 \
    F(ggml_backend_dev_backend_reg, struct ggml_backend_reg *, (ggml_backend_device *))                             \
    F(ggml_backend_dev_supports_op, bool, (ggml_backend_device *, const ggml_tensor *))                             \
    F(ggml_backend_dev_offload_op, bool, (ggml_backend_device *, const ggml_tensor *))                              \
    F(ggml_backend_reg_name, const char *, (struct ggml_backend_reg *))                                             \
    F(ggml_backend_reg_get_proc_address, void *, (struct ggml_backend_reg *, const char *))                         \
    F(ggml_backend_name, const char *, (ggml_backend *))                                                            \
    F(ggml_backend_free, void, (ggml_backend *))                                                                    \
    F(ggml_backend_get_device, ggml_backend_device *, (ggml_backend *))                                             \
    F(ggml_backend_synchronize, void, (ggml_backend *))                                                             \
    F(ggml_backend_graph_compute, int32_t, (ggml_backend *, ggml_cgraph *))                                         \
    F(ggml_backend_graph_compute_async, int32_t, (ggml_backend *, ggml_cgraph *))                                   \
    F(ggml_backend_event_new, ggml_backend_event *, (ggml_backend_device *))                                        \
    F(ggml_backend_event_free, void, (ggml_backend_event *))                                                        \
    F(ggml_backend_event_record, void, (ggml_backend_event *, ggml_backend *))                                      \
    F(ggml_backend_event_wait, void, (ggml_backend *, ggml_backend_event *))                                        \
    F(ggml_backend_get_default_buffer_type, struct ggml_backend_buffer_type *, (ggml_backend *))                    \
    F(ggml_backend_buft_alloc_buffer, ggml_backend_buffer *, (struct ggml_backend_buffer_type *, size_t))           \
    F(ggml_backend_buffer_free, void, (ggml_backend_buffer *))                                                      \
    F(ggml_backend_cpu_buffer_from_ptr, ggml_backend_buffer *, (void *, size_t))                                    \
    F(ggml_backend_tensor_alloc, int32_t, (ggml_backend_buffer *, ggml_tensor *, void *))                           \
    F(ggml_backend_buffer_get_base, void *, (ggml_backend_buffer *))                                                \
    F(ggml_backend_buffer_get_type, struct ggml_backend_buffer_type *, (ggml_backend_buffer *))                     \
    F(ggml_backend_buffer_get_usage, int32_t, (ggml_backend_buffer *))                                              \
    F(ggml_backend_buffer_is_host, bool, (ggml_backend_buffer *))                                                   \
    F(ggml_backend_buft_get_device, ggml_backend_device *, (struct ggml_backend_buffer_type *))                     \
    F(ggml_backend_buffer_get_size, size_t, (ggml_backend_buffer *))                                                \
    F(ggml_backend_sched_new, struct ggml_backend_sched *,                                                          \
      (ggml_backend **, struct ggml_backend_buffer_type **, int, size_t, bool, bool))                               \
    F(ggml_backend_sched_free, void, (struct ggml_backend_sched *))                                                 \
    F(ggml_backend_sched_reserve, bool, (struct ggml_backend_sched *, ggml_cgraph *))
// clang-format on

struct functions {
#define GGML_EXT_ABI_DECLARE(name, result, arguments) result(*name) arguments = nullptr;
    GGML_EXT_ABI_FUNCTIONS(GGML_EXT_ABI_DECLARE)
#undef GGML_EXT_ABI_DECLARE
    const char * (*ggml_version)() = nullptr; // (optional)
};

// Positions of table entries, in pointer-sized words from the struct's start; -1: not found.
struct slots {
    // ggml_backend_device
    int dev_init_backend = -1;
    int dev_supports_op  = -1;
    int dev_offload_op   = -1;
    // ggml_backend
    int backend_free           = -1;
    int backend_graph_compute  = -1;
    int backend_event_record   = -1;
    int backend_event_wait     = -1;
    int backend_graph_optimize = -1; // needs a CPU backend: see probe_graph_optimize
    // ggml_backend_reg
    int reg_get_proc_address = -1;
};

// Ids of the operations that the layer itself must know; -1: this ggml has no such operation.
struct op_ids {
    int32_t none = -1, dup = -1, add = -1, cpy = -1, cont = -1, reshape = -1, view = -1, permute = -1, transpose = -1;
    int32_t set = -1, set_rows = -1, custom = -1, mul_mat = -1, mul_mat_id = -1, unary = -1, glu = -1;
};

struct ggml {
    functions                 fn;
    slots                     slot;
    op_ids                    op;
    std::vector<const char *> op_names; // of 0 .. n_ops()-1; ggml_op_name is not safe to ask for others
    bool                      has_cgraph            = false; // the mirror of ggml_cgraph was proven right
    bool                      graph_optimize_probed = false;
    std::string               version;
    std::string               note;                // what was not found, and why
    std::string               base_path;           // file of libggml-base

    int32_t n_ops() const { return static_cast<int32_t>(op_names.size()); }
    // NULL where there is no such operation
    const char * op_name(int32_t id) const { return id >= 0 && id < n_ops() ? op_names[static_cast<size_t>(id)] : nullptr; }
    // id by name, -1 if there is none
    int32_t find_op(const char * name) const;
};

// Opens (or finds) the libraries, resolves all functions, probes tensor, graph, device, backend and registry layouts.
// Returns an ggml_ext_status; `error` names what does not fit. Runs no code of any backend, and patches nothing.
int load(const ggml_ext_load_params & params, ggml & out, std::string & error);

// Proves the position of graph_optimize by a stub in a live backend of `device` and a two-node graph (also proves that
// nodes arrive as the mirror says). On failure planning stays off: note says why. Restores all that it touched.
void probe_graph_optimize(ggml & g, ggml_backend_device * device, ggml_backend * backend);

// ggml's own count of the nodes that read `tensor` in the whole graph (0 where it is not in the graph's hash set)
int32_t graph_use_count(const ggml_cgraph * graph, const ggml_tensor * tensor);

// A table entry of a device, backend or registry
inline void *& slot_of(void * object, int word) { return static_cast<void **>(object)[word]; }

} // namespace ggml_ext::abi
