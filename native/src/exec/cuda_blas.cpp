#include "exec/cuda_blas.h"

#include "cuda/library_names.h"
#include "support/status.h"

namespace ggml_ext::exec {

int cuda_blas_handle::open(cuda::CUstream stream) {
    shared_library library;
    if (!library.open(cuda::BLAS_NAMES)) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: cuBLAS cannot be loaded (%s and those of earlier versions): %s",
                    *cuda::BLAS_NAMES.begin(), loader_error().c_str());
    }
    int (*create)(void **)                       = nullptr;
    int (*destroy)(void *)                       = nullptr;
    int (*set_stream)(void *, cuda::CUstream)    = nullptr;
    int (*set_workspace)(void *, void *, size_t) = nullptr;
    library.find("cublasCreate_v2", create);
    library.find("cublasDestroy_v2", destroy);
    library.find("cublasSetStream_v2", set_stream);
    library.find("cublasSetWorkspace_v2", set_workspace);
    if (create == nullptr || destroy == nullptr || set_stream == nullptr || set_workspace == nullptr) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "SERV-2: this cuBLAS lacks a function that is needed: cublasSetWorkspace came with CUDA 11");
    }
    if (workspace_ == nullptr) {
        workspace_ = g_.fn.ggml_backend_buft_alloc_buffer(g_.fn.ggml_backend_get_default_buffer_type(backend_), WORKSPACE_BYTES);
    }
    if (workspace_ == nullptr) {
        return fail(GGML_EXT_STATUS_NO_MEMORY, "SERV-2: no memory for the %zu bytes of cuBLAS's workspace", WORKSPACE_BYTES);
    }
    void * handle = nullptr;
    if (const int error = create(&handle); error != 0) {
        return fail(GGML_EXT_STATUS_FAILED, "SERV-2: cublasCreate returned %d", error);
    }
    int error = set_stream(handle, stream); // resets the workspace, so it comes first
    if (error == 0) {
        error = set_workspace(handle, g_.fn.ggml_backend_buffer_get_base(workspace_), WORKSPACE_BYTES);
    }
    if (error != 0) {
        destroy(handle);
        return fail(GGML_EXT_STATUS_FAILED, "SERV-2: cuBLAS took stream or workspace not: status %d", error);
    }
    handle_  = handle;
    destroy_ = destroy;
    library_ = std::move(library);
    return GGML_EXT_STATUS_SUCCESS;
}

cuda_blas_handle::~cuda_blas_handle() {
    if (handle_ != nullptr) {
        destroy_(handle_);
    }
    if (workspace_ != nullptr) {
        g_.fn.ggml_backend_buffer_free(workspace_);
    }
}

} // namespace ggml_ext::exec
