#pragma once
// ggml's structs as ggml-ext reads them. probes.h compares each field with the loaded ggml before anything relies on it:
// struct ggml_tensor is public (ggml.h); struct ggml_cgraph is private, its layout was found by probing ggml 0.21, 0.23, 0.27.

#include <cstddef>
#include <cstdint>

struct ggml_backend;
struct ggml_backend_buffer;
struct ggml_backend_buffer_type;
struct ggml_backend_device;
struct ggml_backend_reg;
struct ggml_backend_sched;
struct ggml_context;

extern "C" {

struct ggml_tensor {
    int32_t               type;
    ggml_backend_buffer * buffer;
    int64_t               ne[4];
    size_t                nb[4];
    int32_t               op;
    int32_t               op_params[16];
    int32_t               flags;
    ggml_tensor *         src[10];
    ggml_tensor *         view_src;
    size_t                view_offs;
    void *                data;
    char                  name[64];
    void *                extra;
    char                  padding[8];
};

struct ggml_hash_set_mirror {
    size_t         size;
    uint32_t *     used;
    ggml_tensor ** keys;
};

struct ggml_cgraph {
    int32_t              size;
    int32_t              n_nodes;
    int32_t              n_leafs;
    ggml_tensor **       nodes;
    ggml_tensor **       grads;
    ggml_tensor **       grad_accs;
    ggml_tensor **       leafs;
    int32_t *            use_counts; // by slot of `visited`
    ggml_hash_set_mirror visited;
    int32_t              order;
    uint64_t             uid;
};

struct ggml_backend_event {
    ggml_backend_device * device;
    void *                context;
};

} // extern "C"

static_assert(sizeof(ggml_tensor) == 336, "ggml_tensor as ggml 0.20 and later have it");
static_assert(sizeof(ggml_cgraph) == 96, "ggml_cgraph as ggml 0.20 and later have it");
static_assert(offsetof(ggml_cgraph, nodes) == 16 && offsetof(ggml_cgraph, use_counts) == 48, "ggml_cgraph");
static_assert(offsetof(ggml_cgraph, visited) == 56 && offsetof(ggml_cgraph, uid) == 88, "ggml_cgraph");

namespace ggml_ext {

// bits of ggml_tensor::flags (GGML_TENSOR_FLAG_*)
constexpr int32_t FLAG_INPUT   = 1;
constexpr int32_t FLAG_OUTPUT  = 2;
constexpr int32_t FLAG_PARAM   = 4;
constexpr int32_t FLAG_COMPUTE = 16; // 0.20 and later: a node without it is not computed

constexpr int32_t TYPE_F32 = 0;
constexpr int32_t TYPE_I8  = 24;

// enum ggml_status
constexpr int GGML_COMPUTE_FAILED  = -1;
constexpr int GGML_COMPUTE_SUCCESS = 0;
constexpr int GGML_COMPUTE_ABORTED = 1;

} // namespace ggml_ext
