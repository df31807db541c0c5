#include "blas.h"

#include <dlfcn.h>

#include <initializer_list>

namespace cuda_ops {

namespace {

// as cuBLAS spells and numbers them
enum {
    CUBLAS_OP_N         = 0,
    CUBLAS_OP_T         = 1,
    CUDA_R_8I           = 3,
    CUDA_R_32I          = 10,
    CUBLAS_COMPUTE_32I  = 72,
    CUBLAS_GEMM_DEFAULT = -1
};

using gemm_ex = int (*)(void * handle, int transa, int transb, int m, int n, int k, const void * alpha, const void * A, int Atype, int lda,
                        const void * B, int Btype, int ldb, const void * beta, void * C, int Ctype, int ldc, int compute, int algorithm);

gemm_ex find_gemm_ex() {
    for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
        for (const char * name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}) {
            if (void * library = dlopen(name, mode)) { // kept for the life of the process
                return reinterpret_cast<gemm_ex>(dlsym(library, "cublasGemmEx"));
            }
        }
    }
    return nullptr;
}

gemm_ex the_gemm_ex() {
    static const gemm_ex found = find_gemm_ex();
    return found;
}

} // namespace

bool has_blas() {
    return the_gemm_ex() != nullptr;
}

int multiply_i8(void * handle, int64_t M, int64_t N, int64_t K, const int8_t * x, int64_t x_stride, const int8_t * w, int64_t w_stride,
                int32_t * sum) {
    if (!has_blas()) {
        return -1;
    }
    // cuBLAS counts columns first: its C is our sum transposed
    const int32_t one = 1, zero = 0;
    return the_gemm_ex()(handle, CUBLAS_OP_T, CUBLAS_OP_N, static_cast<int>(N), static_cast<int>(M), static_cast<int>(K), &one, w, CUDA_R_8I,
                         static_cast<int>(w_stride), x, CUDA_R_8I, static_cast<int>(x_stride), &zero, sum, CUDA_R_32I, static_cast<int>(N),
                         CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT);
}

} // namespace cuda_ops
