#pragma once

#include "dependent.cuh"
#include "ggml-ext-cuda-kernels/rescale_i8.h"

namespace ggml_ext_cuda {

__device__ inline float rescaled(int32_t sum, float x_scale, float w_scale, const float * bias) {
    const float product = __fmul_rn(__fmul_rn(__int2float_rn(sum), x_scale), w_scale);
    return bias ? __fadd_rn(product, *bias) : product;
}

// A block takes blockDim.x * W neighbouring columns of one row, `tiles` blocks a row. W = 4 needs 16-byte
// alignment of all rows, scales and the bias, and N a multiple of 4.
template <int W> __global__ void __launch_bounds__(256) rescale_i8(ggml_ext_cuda_rescale_i8_args p, unsigned tiles) {
    const int64_t m = blockIdx.x / tiles;
    const int64_t n = (static_cast<int64_t>(blockIdx.x % tiles) * blockDim.x + threadIdx.x) * W;
    if (n >= p.N) {
        return;
    }
    const auto * sum = reinterpret_cast<const int32_t *>(reinterpret_cast<const char *>(p.sum) + m * p.sum_stride) + n;
    auto *       dst = reinterpret_cast<float *>(reinterpret_cast<char *>(p.dst) + m * p.dst_stride) + n;

    wait_for_work_before();

    const float         x_scale = p.x_scale ? p.x_scale[p.x_scales == 1 ? 0 : m] : 1.0f;
    alignas(16) float   w_scale[W], bias[W], out[W];
    alignas(16) int32_t values[W];
    if constexpr (W == 4) {
        *reinterpret_cast<int4 *>(values) = *reinterpret_cast<const int4 *>(sum);
        if (p.bias) {
            *reinterpret_cast<float4 *>(bias) = *reinterpret_cast<const float4 *>(p.bias + n);
        }
        if (p.w_scale && p.w_scales != 1) {
            *reinterpret_cast<float4 *>(w_scale) = *reinterpret_cast<const float4 *>(p.w_scale + n);
        }
    } else {
        values[0] = *sum;
        if (p.bias) {
            bias[0] = p.bias[n];
        }
        if (p.w_scale && p.w_scales != 1) {
            w_scale[0] = p.w_scale[n];
        }
    }
    if (!p.w_scale || p.w_scales == 1) {
        const float one = p.w_scale ? p.w_scale[0] : 1.0f;
#pragma unroll
        for (int i = 0; i < W; i++) {
            w_scale[i] = one;
        }
    }
#pragma unroll
    for (int i = 0; i < W; i++) {
        out[i] = rescaled(values[i], x_scale, w_scale[i], p.bias ? &bias[i] : nullptr);
    }
    if constexpr (W == 4) {
        *reinterpret_cast<float4 *>(dst) = *reinterpret_cast<float4 *>(out);
    } else {
        *dst = out[0];
    }
}

} // namespace ggml_ext_cuda
