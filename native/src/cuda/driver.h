#pragma once
// The CUDA driver (libcuda) as ggml-ext calls it: the few types and functions, declared here and found by name, so that the same
// libggml-ext runs on hosts with and without CUDA. Streams, events and graphs of the driver are those of the CUDA runtime that
// ggml uses; the runtime itself, of which a ggml may carry its own copy, is not needed.

#include "support/shared_library.h"

#include <cstdint>
#include <memory>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphNode_st;
struct CUgraphExec_st;
struct CUmod_st;
struct CUfunc_st;

namespace ggml_ext::cuda {

using CUresult    = int; // 0: success
using CUdevice    = int;
using CUcontext   = CUctx_st *;
using CUstream    = CUstream_st *;
using CUevent     = CUevent_st *;
using CUgraph     = CUgraph_st *;
using CUgraphNode = CUgraphNode_st *;
using CUgraphExec = CUgraphExec_st *;
using CUmodule    = CUmod_st *;
using CUfunction  = CUfunc_st *;

constexpr CUresult CUDA_ERROR_INVALID_VALUE = 1;
constexpr CUresult CUDA_ERROR_NOT_FOUND     = 500;

constexpr unsigned CU_STREAM_NON_BLOCKING         = 1;
constexpr unsigned CU_EVENT_DISABLE_TIMING        = 2;
constexpr int      CU_STREAM_CAPTURE_MODE_RELAXED = 2;

enum CUstreamCaptureStatus : int {
    CU_STREAM_CAPTURE_STATUS_NONE        = 0,
    CU_STREAM_CAPTURE_STATUS_ACTIVE      = 1,
    CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
};

enum CUdevice_attribute : int {
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR            = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR            = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN   = 97,
    CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
};

enum CUfunction_attribute : int {
    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK         = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES             = 1, // static
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES              = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS                      = 4,
    CU_FUNC_ATTRIBUTE_PTX_VERSION                   = 5, // of the architecture that it was compiled for, 90
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum CUjit_option : int {
    CU_JIT_ERROR_LOG_BUFFER            = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
};

constexpr int CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6;

struct CUlaunchAttribute {
    int id;
    int pad;
    union {
        int      programmaticStreamSerializationAllowed;
        uint64_t all[8];
    } value;
};

struct CUlaunchConfig {
    unsigned            gridDimX, gridDimY, gridDimZ;
    unsigned            blockDimX, blockDimY, blockDimZ;
    unsigned            sharedMemBytes;
    CUstream            hStream;
    CUlaunchAttribute * attrs;
    unsigned            numAttrs;
};

struct CUgraphEdgeData { // all 0: the one node begins when the other has ended
    unsigned char from_port;
    unsigned char to_port;
    unsigned char type;
    unsigned char reserved[5];
};

// name as the driver's headers have it, name of the symbol, arguments
// clang-format off
#define GGML_EXT_CUDA_FUNCTIONS(F)                                                                          \
    F(cuInit, "cuInit", (unsigned))                                                                         \
    F(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                                    \
    F(cuGetErrorName, "cuGetErrorName", (CUresult, const char **))                                          \
    F(cuGetErrorString, "cuGetErrorString", (CUresult, const char **))                                      \
    F(cuDeviceGetCount, "cuDeviceGetCount", (int *))                                                        \
    F(cuDeviceGetByPCIBusId, "cuDeviceGetByPCIBusId", (CUdevice *, const char *))                           \
    F(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, CUdevice))                                 \
    F(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                        \
    F(cuDevicePrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                                \
    F(cuCtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                                      \
    F(cuCtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                                 \
    F(cuCtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                                 \
    F(cuStreamCreate, "cuStreamCreate", (CUstream *, unsigned))                                             \
    F(cuStreamDestroy, "cuStreamDestroy_v2", (CUstream))                                                    \
    F(cuStreamSynchronize, "cuStreamSynchronize", (CUstream))                                               \
    F(cuStreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned))                                \
    F(cuStreamIsCapturing, "cuStreamIsCapturing", (CUstream, CUstreamCaptureStatus *))                      \
    F(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int))                                     \
    F(cuStreamEndCapture, "cuStreamEndCapture", (CUstream, CUgraph *))                                      \
    F(cuEventCreate, "cuEventCreate", (CUevent *, unsigned))                                                \
    F(cuEventDestroy, "cuEventDestroy_v2", (CUevent))                                                       \
    F(cuEventRecord, "cuEventRecord", (CUevent, CUstream))                                                  \
    F(cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags", (CUgraphExec *, CUgraph, unsigned long long)) \
    F(cuGraphLaunch, "cuGraphLaunch", (CUgraphExec, CUstream))                                              \
    F(cuGraphGetNodes, "cuGraphGetNodes", (CUgraph, CUgraphNode *, size_t *))                               \
    F(cuGraphDestroy, "cuGraphDestroy", (CUgraph))                                                          \
    F(cuGraphExecDestroy, "cuGraphExecDestroy", (CUgraphExec))                                              \
    F(cuModuleLoadDataEx, "cuModuleLoadDataEx", (CUmodule *, const void *, unsigned, CUjit_option *, void **)) \
    F(cuModuleUnload, "cuModuleUnload", (CUmodule))                                                         \
    F(cuModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))                   \
    F(cuFuncGetAttribute, "cuFuncGetAttribute", (int *, CUfunction_attribute, CUfunction))                  \
    F(cuFuncSetAttribute, "cuFuncSetAttribute", (CUfunction, CUfunction_attribute, int))                    \
    F(cuLaunchKernel, "cuLaunchKernel",                                                                     \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))
// clang-format on

// NULL in drivers before CUDA 12.3; the first one before 11.8, the last one before 12.4
// clang-format off
#define GGML_EXT_CUDA_OPTIONAL_FUNCTIONS(F)                                                                 \
    F(cuLaunchKernelEx, "cuLaunchKernelEx", (const CUlaunchConfig *, CUfunction, void **, void **))         \
    F(cuGraphGetEdges, "cuGraphGetEdges_v2", (CUgraph, CUgraphNode *, CUgraphNode *, CUgraphEdgeData *, size_t *)) \
    F(cuGraphRemoveDependencies, "cuGraphRemoveDependencies_v2",                                            \
      (CUgraph, const CUgraphNode *, const CUgraphNode *, const CUgraphEdgeData *, size_t))                 \
    F(cuFuncGetParamInfo, "cuFuncGetParamInfo", (CUfunction, size_t, size_t *, size_t *))
// clang-format on

struct driver {
#define GGML_EXT_CUDA_DECLARE(name, symbol, arguments) CUresult(*name) arguments = nullptr;
    GGML_EXT_CUDA_FUNCTIONS(GGML_EXT_CUDA_DECLARE)
    GGML_EXT_CUDA_OPTIONAL_FUNCTIONS(GGML_EXT_CUDA_DECLARE)
#undef GGML_EXT_CUDA_DECLARE
    shared_library library;
    int            version = 0; // 13000: CUDA 13.0
};

// The initialised driver, NULL where there is none or it is too old; the reason is then the thread's last error.
std::shared_ptr<const driver> load_driver();

// A status; the message names `what` and the driver's own text.
int check(const driver & cu, CUresult result, const char * what);

} // namespace ggml_ext::cuda
