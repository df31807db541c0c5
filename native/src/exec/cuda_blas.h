#pragma once
// The cuBLAS handle of one backend (service ggml_ext_cuda_blas_v1), through the cuBLAS that ggml has loaded.

#include "abi/ggml.h"
#include "cuda/driver.h"

namespace ggml_ext::exec {

class cuda_blas_handle {
public:
    cuda_blas_handle(const abi::ggml & g, ggml_backend * backend) : g_(g), backend_(backend) {}
    ~cuda_blas_handle();
    cuda_blas_handle(const cuda_blas_handle &)             = delete;
    cuda_blas_handle & operator=(const cuda_blas_handle &) = delete;

    bool   is_open() const { return handle_ != nullptr; }
    int    open(cuda::CUstream stream); // a status
    void * get() const { return handle_; }

private:
    static constexpr size_t WORKSPACE_BYTES = 32 * 1024 * 1024; // its own, so that it allocates nothing later

    const abi::ggml &     g_;
    ggml_backend *        backend_;
    shared_library        library_;
    void *                handle_    = nullptr;
    ggml_backend_buffer * workspace_ = nullptr;
    int (*destroy_)(void *)          = nullptr;
};

} // namespace ggml_ext::exec
