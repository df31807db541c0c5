#ifndef GGML_EXT_H
#define GGML_EXT_H

//
// ggml-ext: operators, kernels, fusion rules and graph optimisers for stock ggml
//
// This header stands alone: C11, no ggml header needed. ggml types are only declared.
//
// Rules that hold everywhere
//
//  - Every function that can fail returns an `enum ggml_ext_status` as int; the reason is in ggml_ext_last_error().
//  - Every struct that crosses the border begins with `struct_size`. The caller of a function that fills a struct, and the
//    author of a descriptor, sets it to sizeof(the struct) as compiled; fields that the other side does not know are left alone.
//  - Shapes and strides are in ggml order (ne[0] is the fastest dimension); strides nb[] are in bytes.
//  - Callbacks never throw, never longjmp, and may be called from any thread. Pointers that they get are valid during the
//    call only, unless it is said otherwise.
//  - Functions may be called from any thread. Calls that change the registry are serialised; queries never block.
//

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of functions that a library has for others. On those that are declared only, dllexport says nothing.
#if defined(_WIN32)
#    define GGML_EXT_API __declspec(dllexport)
#else
#    define GGML_EXT_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define GGML_EXT_API_VERSION   1
#define GGML_EXT_MAX_ATTR_SIZE 40  // bytes of attributes of one operator node (the tail of ggml's op_params)
#define GGML_EXT_MAX_SRC       10  // sources of one node, as in ggml
#define GGML_EXT_MAX_NAME      128 // bytes of a registration's name, the terminating zero included
#define GGML_EXT_MAX_DIMS      4

struct ggml_backend;
struct ggml_backend_device;
struct ggml_backend_buffer;
struct ggml_context;
struct ggml_cgraph;
struct ggml_tensor;

// an entry of the registry: an operator, a kernel or a rule
struct ggml_ext_registration;

// the part of a graph that one backend computes, as a rule sees it during planning
struct ggml_ext_graph;

// an immutable copy of what was planned
struct ggml_ext_plan;

//
// Status
//

enum ggml_ext_status {
    GGML_EXT_STATUS_SUCCESS          = 0,
    GGML_EXT_STATUS_INVALID_ARGUMENT = 1,  // a value that is never right; the message names it
    GGML_EXT_STATUS_DUPLICATE        = 2,  // the name is taken; what had it stays
    GGML_EXT_STATUS_NOT_FOUND        = 3,
    GGML_EXT_STATUS_IN_USE           = 4,  // withdrawing refused: a live backend has planned with it
    GGML_EXT_STATUS_UNSUPPORTED      = 5,  // right in itself, but not possible here
    GGML_EXT_STATUS_INCOMPATIBLE     = 6,  // this ggml's layouts or interface are not known
    GGML_EXT_STATUS_NO_MEMORY        = 7,
    GGML_EXT_STATUS_FAILED           = 8,  // a callback failed
    GGML_EXT_STATUS_ABORTED          = 9,  // the backend's abort callback asked to stop
    GGML_EXT_STATUS_NOT_LOADED       = 10, // ggml_ext_load has not succeeded yet
};

// the constant's name without its prefix, "UNKNOWN" for other values
GGML_EXT_API const char * ggml_ext_status_name(int status);

// message of the last failure on this thread ("" if there was none); valid until the next ggml_ext call on this thread
GGML_EXT_API const char * ggml_ext_last_error(void);

// for callbacks: the message (copied) that explains a refusal or a failure which the callback is about to return
GGML_EXT_API void ggml_ext_set_error(const char * message);

GGML_EXT_API int32_t      ggml_ext_api_version(void); // GGML_EXT_API_VERSION of the library
GGML_EXT_API const char * ggml_ext_version(void);     // "0.1.0"

enum ggml_ext_log_level {
    GGML_EXT_LOG_LEVEL_DEBUG = 1, // the values of enum ggml_log_level
    GGML_EXT_LOG_LEVEL_INFO  = 2,
    GGML_EXT_LOG_LEVEL_WARN  = 3,
    GGML_EXT_LOG_LEVEL_ERROR = 4,
};

typedef void (*ggml_ext_log_callback)(int32_t level, const char * text, void * user_data);

// NULL: warnings and errors go to stderr (the default)
GGML_EXT_API void ggml_ext_log_set(ggml_ext_log_callback callback, void * user_data);

//
// Loading and attaching
//

struct ggml_ext_load_params {
    size_t       struct_size;
    const char * base_path; // libggml-base, as the process loaded it; NULL: its symbols are already visible in the process
    const char * ggml_path; // libggml (the registry of backends); NULL: as above
};

// Resolves ggml by name and probes its layouts. Nothing is patched yet. Loading the same ggml again is harmless;
// another ggml, or a second copy of libggml-base in the process: GGML_EXT_STATUS_INCOMPATIBLE.
GGML_EXT_API int  ggml_ext_load(const struct ggml_ext_load_params * params);
GGML_EXT_API bool ggml_ext_is_loaded(void);

struct ggml_ext_abi_info {
    size_t       struct_size;
    const char * ggml_version;    // "" where this ggml does not say
    size_t       tensor_size;     // bytes
    size_t       cgraph_size;     // bytes; 0 where the probe failed
    bool         has_graph_views; // false: the graph's layout is not known, so nothing is planned: no overrides, no fusion; registered
                                  // operators run on CPU devices, on one thread
    const char * note;            // what was not found and why, "" if all was
};

GGML_EXT_API int ggml_ext_get_abi_info(struct ggml_ext_abi_info * info);

// Patches a device's tables in memory. The CPU device comes first, since layouts are proven on it (another one: UNSUPPORTED).
// Backends that the device makes from now on are patched too; one made before needs ggml_ext_attach_backend. Attaching twice
// is harmless.
GGML_EXT_API int  ggml_ext_attach_device(struct ggml_backend_device * device);
GGML_EXT_API int  ggml_ext_attach_backend(struct ggml_backend * backend);
GGML_EXT_API bool ggml_ext_is_attached(const struct ggml_backend_device * device);

// Puts the device's original tables back. Refused (IN_USE) while it has registrations or live attached backends. A graph that was
// reserved or allocated before, and never computed, keeps sources that planning added: build it anew.
GGML_EXT_API int ggml_ext_detach_device(struct ggml_backend_device * device);

//
// What callbacks see
//

// flags of struct ggml_ext_tensor
enum ggml_ext_tensor_flag {
    GGML_EXT_TENSOR_FLAG_INPUT  = 1, // the values of ggml's GGML_TENSOR_FLAG_*
    GGML_EXT_TENSOR_FLAG_OUTPUT = 2,
    GGML_EXT_TENSOR_FLAG_PARAM  = 4,
};

struct ggml_ext_tensor {
    size_t                     struct_size;
    const struct ggml_tensor * tensor;   // identity
    void *                     data;     // in the backend's address space; NULL where there is no address yet
    int64_t                    ne[GGML_EXT_MAX_DIMS];
    size_t                     nb[GGML_EXT_MAX_DIMS];
    size_t                     nbytes;   // as ggml_nbytes
    int32_t                    type;     // enum ggml_type
    int32_t                    flags;    // enum ggml_ext_tensor_flag
    const char *               name;
    const char *               op;       // what computes it: "NONE", "MUL_MAT", ..., or a registered operator's name
    const struct ggml_tensor * view_src; // NULL: owns its storage
    size_t                     view_offs;
};

struct ggml_ext_node {
    size_t                                 struct_size;
    const char *                           op;        // as ggml_op_name, "UNARY" and "GLU" included, or a registered operator's name
    const struct ggml_ext_tensor *         dst;
    int32_t                                n_src;     // index of the last source that is there, plus one
    const struct ggml_ext_tensor * const * src;       // an entry is NULL where ggml's src[i] is NULL
    const void *                           op_params; // ggml's, 64 bytes; not aligned to more than 4: use memcpy
    const void *                           attrs;     // a registered operator's attributes, else NULL; use memcpy
    size_t                                 attrs_size;
    const char *                           function;  // of a UNARY or GLU: "SILU", "SWIGLU", ... as ggml_unary_op_name or ggml_glu_op_name; else NULL
};

//
// Operators
//

struct ggml_ext_output {
    size_t  struct_size;
    int32_t type; // enum ggml_type
    int64_t ne[GGML_EXT_MAX_DIMS];
};

// Gives the output's type and shape (contiguous), or refuses with a status and ggml_ext_set_error.
// `out` comes filled with F32 and zero dimensions.
typedef int (*ggml_ext_infer)(
        int32_t                                n_src,
        const struct ggml_ext_tensor * const * src,
        const void *                           attrs,
        struct ggml_ext_output *               out,
        void *                                 user_data);

struct ggml_ext_op_desc {
    size_t         struct_size;
    const char *   name;       // versioned, "app.swish.v1": letters, digits, '.', '_', '-'; at least one '.'; unique in the process
    size_t         attrs_size; // bytes that each node carries, at most GGML_EXT_MAX_ATTR_SIZE
    ggml_ext_infer infer;
    void *         user_data;
    void         (*release)(void * user_data); // (optional) after withdrawal
};

// `out` gets the handle for ggml_ext_unregister; it may be NULL
GGML_EXT_API int ggml_ext_register_op(const struct ggml_ext_op_desc * desc, struct ggml_ext_registration ** out);

// What computes a tensor: "NONE", "MUL_MAT", ..., or a registered operator's name, withdrawn ones included. NULL: no tensor, or ggml
// is not loaded. It lives as long as the process.
GGML_EXT_API const char * ggml_ext_op_name(const struct ggml_tensor * tensor);

// Makes a node in `ctx`: an ordinary tensor of ggml's op CUSTOM. Nothing is made where this fails.
// `attrs` has exactly the operator's attrs_size bytes and is copied.
GGML_EXT_API int ggml_ext_op_create(
        struct ggml_context *        ctx,
        const char *                 op,
        int32_t                      n_src,
        struct ggml_tensor * const * src,
        const void *                 attrs,
        size_t                       attrs_size,
        struct ggml_tensor **        out);

//
// Kernels and rules
//

enum ggml_ext_kernel_flag {
    // CUDA: execute only enqueues replayable work on the service's stream; lazy set-up is done by the end of the first execution
    GGML_EXT_KERNEL_CAPTURE_SAFE = 1 << 0,
    // needs CAPTURE_SAFE: what is recorded depends on metadata, addresses, the device and the registration alone, and
    // owns nothing of the plan's state, so that an equal plan may replay it
    GGML_EXT_KERNEL_REPLAY_REUSABLE = 1 << 1,
    // a rule's kernel is right whatever storage its output shares with its inputs (through workspace, for example). Without it a
    // group whose output overlaps what an earlier node of the group reads runs as single operations
    GGML_EXT_KERNEL_OVERLAP_SAFE = 1 << 2,
};

struct ggml_ext_prepare_params {
    size_t                               struct_size;
    struct ggml_backend *                backend; // NULL where a CPU backend that the layer is not attached to runs an operator
    int32_t                              n_nodes; // 1, or the length of the match
    const struct ggml_ext_node * const * nodes;   // in graph order; the last one's dst is the output. No addresses yet.
                                                  // The array and all it points to stay valid until destroy
};

struct ggml_ext_prepared {
    size_t  struct_size;
    void *  state;          // handed to run, execute and destroy
    size_t  workspace_size; // bytes of scratch memory
    int32_t n_phases;       // task form: 1 as it comes, at most 65536; a barrier separates phases
    int32_t n_tasks;        // task form: at most so many tasks a phase; 0 (as it comes): one for each of the backend's threads
};

struct ggml_ext_exec_params {
    size_t                               struct_size;
    struct ggml_backend *                backend;
    void *                               state;
    int32_t                              n_nodes;
    const struct ggml_ext_node * const * nodes;          // the same as in prepare, now with addresses
    void *                               workspace;      // aligned to 128 bytes; contents undefined; shared by the steps of a plan
    size_t                               workspace_size; // at least what prepare asked for
};

struct ggml_ext_kernel_desc {
    size_t       struct_size;
    const char * name; // unique on the device; its off switch is the environment variable GGML_EXT_DISABLE_<NAME>
                       // (upper case, other characters than letters and digits as '_'), set to anything but "0"
    const char * op;   // "MUL_MAT", a registered operator's name, or for a rule the op of the first node of its matches
                       // (NULL: matches may begin at any node)
    int32_t      priority; // higher ones are asked first; equal ones in the order of registration
    void *       user_data;

    // (optional) can it compute this single node? 1 yes, 0 no (ggml_ext_set_error may say why), negative: the callback failed.
    // NULL: a rule that serves no single node. Metadata only, there may be no addresses.
    int32_t (*supports)(const struct ggml_ext_node * node, void * user_data);

    // (optional) is it better than the device's own kernel? As above; NULL: yes. Not asked where there is no native kernel.
    int32_t (*preferred)(const struct ggml_ext_node * node, void * user_data);

    // (optional) number of consecutive nodes from `first` that it replaces, 0 for none (ggml_ext_set_error may say why),
    // negative: the callback failed. Whether a match is legal is decided by ggml-ext.
    int32_t (*match)(const struct ggml_ext_graph * graph, int32_t first, void * user_data);

    // (optional) may reorder by ggml_ext_graph_delay, before any matching
    int (*optimize)(struct ggml_ext_graph * graph, void * user_data);

    // (optional) host-side state of one planned step; may run while memory is only measured
    int (*prepare)(const struct ggml_ext_prepare_params * params, struct ggml_ext_prepared * out, void * user_data);

    // exactly one of the two forms:
    // task form, called at once by nth threads of the backend with ith = 0 .. nth-1, for each phase
    int (*run)(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data);
    // whole form, called once on one thread; it may enqueue work or ask a service
    int (*execute)(const struct ggml_ext_exec_params * params, void * user_data);

    // (optional) frees prepare's state
    void (*destroy)(void * state, void * user_data);
    // (optional) after withdrawal, once nothing can call the kernel any more
    void (*release)(void * user_data);
};

// When a registration takes effect: support queries at once, planning at the next allocation of a graph. A graph that is
// already planned keeps its kernels until it is allocated again.
GGML_EXT_API int ggml_ext_register_kernel(
        struct ggml_backend_device *        device,
        const struct ggml_ext_kernel_desc * desc,
        struct ggml_ext_registration **     out);
GGML_EXT_API int ggml_ext_register_kernel_ex(
        struct ggml_backend_device *        device,
        const struct ggml_ext_kernel_desc * desc,
        uint32_t                            flags, // enum ggml_ext_kernel_flag
        struct ggml_ext_registration **     out);

// Withdraws an operator, a kernel or a rule, and forgets the handle. IN_USE, and nothing changes: a kernel with which a live
// backend has planned; an operator that has kernels.
GGML_EXT_API int ggml_ext_unregister(struct ggml_ext_registration * registration);

// Withdraws several in one step, in any order: an operator together with its kernels. IN_USE or NOT_FOUND for one of them, and
// nothing changes.
GGML_EXT_API int ggml_ext_unregister_all(
        struct ggml_ext_registration * const * registrations,
        size_t                                 n);

// The name it was registered under, NULL where the handle is no live one; valid until it is withdrawn
GGML_EXT_API const char * ggml_ext_registration_name(const struct ggml_ext_registration * registration);

// The off switch of a kernel or rule; takes effect as a registration does.
GGML_EXT_API int ggml_ext_set_enabled(struct ggml_ext_registration * registration, bool enabled);

// While a graph is allocated: ggml's scheduler asks many times whether a device supports a node, and ends the process where no device
// says so any more. Between a call with true and one with false each device gives on this thread the answer that it gave first; a node
// whose kernel is gone by then is an error of its compute. Calls nest.
GGML_EXT_API void ggml_ext_hold_answers(bool hold);

// ggml_backend_dev_supports_op of the device alone, without extensions
GGML_EXT_API bool ggml_ext_dev_supports_native_op(struct ggml_backend_device * device, const struct ggml_tensor * op);

//
// Graphs during planning (valid in match and optimize)
//

GGML_EXT_API int32_t                      ggml_ext_graph_n_nodes(const struct ggml_ext_graph * graph);
// NULL where `index` is out of range; valid until match or optimize returns
GGML_EXT_API const struct ggml_ext_node * ggml_ext_graph_node(const struct ggml_ext_graph * graph, int32_t index);
// nodes of the whole graph that read node `index` (ggml's own count); -1 out of range
GGML_EXT_API int32_t                      ggml_ext_graph_use_count(const struct ggml_ext_graph * graph, int32_t index);
// index of the node that computes `tensor`; -1 where it is none of this graph
GGML_EXT_API int32_t                      ggml_ext_graph_find(const struct ggml_ext_graph * graph, const struct ggml_tensor * tensor);

// optimize only: moves nodes [first, first + count) behind the nodes that follow, up to but not including node `before`
// (before == n_nodes: to the end). Refused with a reason, and nothing moves, where a moved node's result, storage or input is
// touched by what is crossed.
GGML_EXT_API int ggml_ext_graph_delay(struct ggml_ext_graph * graph, int32_t first, int32_t count, int32_t before);

//
// Weights
//

// Kernels may keep copies of weights, packed for example. A program that writes the memory of a weight which a kernel has used,
// other than by nodes of a graph, reports it: copies of these bytes are made anew before their next use. What is not reported
// is looked for in samples, and the change of a few elements may go unnoticed. Not while a graph that reads the weight is computed.
GGML_EXT_API void ggml_ext_weights_changed(const void * data, size_t size);

// For such a kernel: were any of these bytes reported since the call that set *version? True for a *version of 0, the one to begin
// with, and for one that is very old.
GGML_EXT_API bool ggml_ext_weights_changed_since(uint64_t * version, const void * data, size_t size);

//
// Observation
//

struct ggml_ext_kernel_stats {
    size_t   struct_size;
    uint64_t n_supported;   // support queries answered yes
    uint64_t n_unsupported; // support queries answered no
    uint64_t n_planned;     // steps frozen into plans
    uint64_t n_executed;    // steps executed
    uint64_t n_failed;      // callbacks that failed
    uint64_t n_refused;     // matches that were not legal
    uint64_t time_ns;       // of executed steps, on the thread of ith 0; only while profiling is on
    uint64_t n_timed;       // executed steps that time_ns is the time of
};

GGML_EXT_API int  ggml_ext_get_kernel_stats(const struct ggml_ext_registration * registration, struct ggml_ext_kernel_stats * stats);
GGML_EXT_API void ggml_ext_set_profiling(bool enabled); // off as it comes; takes effect at the next compute

struct ggml_ext_backend_stats {
    size_t   struct_size;
    uint64_t n_planned;      // graphs planned before allocation
    uint64_t n_planned_late; // graphs planned at compute: direct computes, and plans that no longer fitted
    uint64_t n_computed;     // computes with at least one extension step
    uint64_t n_groups;       // fused groups executed
    uint64_t n_singly;       // fused groups that ran as single operations after all
    uint64_t plan_time_ns;   // time spent planning
    uint64_t workspace_size; // bytes of scratch memory owned by the backend's plans now
    uint64_t n_recorded;     // CUDA: plans recorded as CUDA graphs
    uint64_t n_reused;       // CUDA: plans that took over the recording of an equal one
    uint64_t n_replayed;     // CUDA: computes that launched a recording
};

GGML_EXT_API int ggml_ext_get_backend_stats(struct ggml_backend * backend, struct ggml_ext_backend_stats * stats);

// Chooses for one node as planning does, and computes nothing: a plan of that node, with its step (none where nothing computes it) and
// each kernel's refusal; free it. Asks kernels, and counts their answers. NOT_FOUND where the device is not attached.
GGML_EXT_API int  ggml_ext_plan_single(struct ggml_backend_device * device, const struct ggml_tensor * node, struct ggml_ext_plan ** out);

// Copies the plans that the backend holds now, most recent first; index 0 .. until NOT_FOUND. The copy is immutable and
// outlives backend and graph; free it.
GGML_EXT_API int  ggml_ext_plan_copy(struct ggml_backend * backend, int32_t index, struct ggml_ext_plan ** out);
GGML_EXT_API void ggml_ext_plan_free(struct ggml_ext_plan * plan);

struct ggml_ext_plan_info {
    size_t       struct_size;
    const char * backend; // its name; the device's where one node was asked for
    int32_t      n_nodes;
    int32_t      n_steps;
    int32_t      n_refusals;
    size_t       workspace_size;
    bool         before_allocation; // planned before allocation (fusion possible), or at compute
    uint64_t     n_computed;
};

struct ggml_ext_plan_node {
    size_t       struct_size;
    const char * name;
    const char * op;
    int32_t      type;
    int64_t      ne[GGML_EXT_MAX_DIMS];
};

struct ggml_ext_plan_step {
    size_t       struct_size;
    int32_t      first;
    int32_t      n_nodes;
    const char * kernel;  // NULL: the device's own
    bool         fused;   // a group of a rule
    size_t       workspace_size;
    uint64_t     n_executed;
    uint64_t     time_ns; // all executions, while profiling is on
    uint64_t     n_timed; // executions that time_ns is the time of
};

struct ggml_ext_plan_refusal {
    size_t       struct_size;
    int32_t      node;
    const char * kernel;
    const char * reason; // "FUSE-2: node 7 has 2 consumers"
};

// the strings live as long as the copy
GGML_EXT_API int ggml_ext_plan_get_info   (const struct ggml_ext_plan * plan, struct ggml_ext_plan_info * info);
GGML_EXT_API int ggml_ext_plan_get_node   (const struct ggml_ext_plan * plan, int32_t index, struct ggml_ext_plan_node * node);
GGML_EXT_API int ggml_ext_plan_get_step   (const struct ggml_ext_plan * plan, int32_t index, struct ggml_ext_plan_step * step);
GGML_EXT_API int ggml_ext_plan_get_refusal(const struct ggml_ext_plan * plan, int32_t index, struct ggml_ext_plan_refusal * refusal);

//
// Services, found by name through ggml_backend_reg_get_proc_address of an attached device's registry
//

// The same for kernel libraries that do not know ggml; NULL and a message where the device has no such service.
GGML_EXT_API void * ggml_ext_get_service(struct ggml_backend_device * device, const char * name);

// "ggml_ext_cpu_parallel_v1": runs task(context, ith, nth) on the CPU backend's own threads and returns when all are done, with
// the first status that was not SUCCESS, or ABORTED if the backend's abort callback asked for it.
// Only inside execute, on execute's thread.
typedef int (*ggml_ext_parallel_task)(void * context, int32_t ith, int32_t nth);
typedef int (*ggml_ext_cpu_parallel_v1_t)(struct ggml_backend * backend, ggml_ext_parallel_task task, void * context);

struct ggml_ext_cuda_context {
    size_t  struct_size;
    int32_t device; // physical ordinal
    void *  stream; // cudaStream_t, ordered with native work
};

// "ggml_ext_cuda_context_v1": only inside execute
typedef int (*ggml_ext_cuda_context_v1_t)(struct ggml_backend * backend, struct ggml_ext_cuda_context * out);
// "ggml_ext_cuda_device_v1": any time
typedef int (*ggml_ext_cuda_device_v1_t)(struct ggml_backend_device * device, int32_t * ordinal);
// "ggml_ext_cuda_blas_v1": only inside execute; a cublasHandle_t on the context's stream, host scalar pointers; the layer
// owns it: do not keep it, and leave its stream, modes and workspace alone
typedef int (*ggml_ext_cuda_blas_v1_t)(struct ggml_backend * backend, void ** handle);

//
// CUDA modules: kernels compiled ahead of time, or from source text at run time
//
// A module belongs to the device that it was made for. It is made outside execute, or in the first execution: never while a
// stream is captured. It is launched inside. They need the driver of CUDA 12.4 or later (UNSUPPORTED before).
//

struct ggml_ext_cuda_module;

struct ggml_ext_cuda_source {
    size_t               struct_size;
    const char *         text;      // CUDA C++; a kernel that is launched by its name is declared extern "C"
    const char *         name;      // (optional) what the compiler's messages call it
    int32_t              n_options;
    const char * const * options;   // NVRTC's, such as "--use_fast_math"; the architecture is the device's
};

// Compiles to machine code for the device by NVRTC, which is looked for when it is needed (UNSUPPORTED where there is none).
// The message of a failure holds the compiler's log.
GGML_EXT_API int ggml_ext_cuda_module_compile(
        struct ggml_backend_device *        device,
        const struct ggml_ext_cuda_source * source,
        struct ggml_ext_cuda_module **      out);

// `image` is a cubin, a fat binary or PTX text, and is copied
GGML_EXT_API int ggml_ext_cuda_module_load(
        struct ggml_backend_device *   device,
        const void *                   image,
        size_t                         size, // bytes
        struct ggml_ext_cuda_module ** out);

// Forgets the handle. The code stays on the device until all backends that launched from it are freed, since recordings of theirs
// may hold it.
GGML_EXT_API int ggml_ext_cuda_module_free(struct ggml_ext_cuda_module * module);

struct ggml_ext_cuda_function_info {
    size_t         struct_size;
    int32_t        n_params;
    const size_t * param_sizes;           // bytes, n_params of them; valid as long as the module's handle
    int32_t        max_threads_per_block; // of this function on this device
    int32_t        n_registers;           // per thread
    size_t         static_shared_memory;  // bytes
    size_t         local_memory;          // bytes per thread
};

GGML_EXT_API int ggml_ext_cuda_module_get_function(
        struct ggml_ext_cuda_module *        module,
        const char *                         name,
        struct ggml_ext_cuda_function_info * info);

enum ggml_ext_cuda_launch_flag {
    // Each thread of the kernel executes griddepcontrol.wait (cudaGridDependencySynchronize) before it reads or writes memory, so the
    // kernel may begin while the one in front of it ends. It does so on GPUs of compute capability 9 and later, if its code was
    // compiled for one; elsewhere the flag has no effect.
    GGML_EXT_CUDA_LAUNCH_EARLY = 1 << 0,
};

struct ggml_ext_cuda_launch_params {
    size_t                        struct_size;
    struct ggml_ext_cuda_module * module;
    const char *                  function;
    uint32_t                      grid[3];       // blocks
    uint32_t                      block[3];      // threads
    uint32_t                      shared_memory; // bytes of dynamic shared memory per block
    int32_t                       n_args;
    const void * const *          args;          // each points to the argument's value
    const size_t *                arg_sizes;     // bytes, as the function declares them
    uint32_t                      flags;         // enum ggml_ext_cuda_launch_flag
};

// Only inside execute of a kernel of this backend, on execute's thread: launches on the context service's stream. Number and sizes of
// the arguments, grid, block and shared memory are checked; what the kernel does with them is not.
GGML_EXT_API int ggml_ext_cuda_launch(struct ggml_backend * backend, const struct ggml_ext_cuda_launch_params * params);

//
// Kernel libraries
//

// A shared library of kernels exports this function under the name "ggml_ext_kernel_library_init" and registers its operators and
// kernels for the device (operators only where they are not registered yet). It returns a status; what it registered before a
// failure, it withdraws. `add` receives each registration handle, for later withdrawal by the caller.
typedef int (*ggml_ext_add_registration)(struct ggml_ext_registration * registration, void * context);
typedef int (*ggml_ext_kernel_library_init_t)(
        struct ggml_backend_device * device,
        ggml_ext_add_registration    add,
        void *                       context);

// Calls a library's function, and holds it to that: `add` (not NULL) receives what it registered on this thread without handing it over,
// and of a failure, its own or add's, nothing stays registered. The library stays loaded for as long as the process lives.
GGML_EXT_API int ggml_ext_init_kernel_library(
        ggml_ext_kernel_library_init_t init,
        struct ggml_backend_device *   device,
        ggml_ext_add_registration      add,
        void *                         context);

#ifdef __cplusplus
}
#endif

#endif // GGML_EXT_H
