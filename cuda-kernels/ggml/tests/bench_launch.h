#pragma once

#include <cuda_runtime_api.h>

// a cudaError_t
int launch_swish(const float * x, float * y, float beta, long long n, cudaStream_t stream);
