#pragma once

// The one function of cuBLAS that is needed, found in the library that the process has loaded or can load.

#include <cstdint>

namespace cuda_ops {

// sum[m][n] = sum_k x[m][k] * w[n][k], exact in int32. A cublasStatus_t; -1: there is no cuBLAS.
int multiply_i8(void * handle, int64_t M, int64_t N, int64_t K, const int8_t * x, int64_t x_stride, const int8_t * w, int64_t w_stride,
                int32_t * sum);

bool has_blas();

} // namespace cuda_ops
