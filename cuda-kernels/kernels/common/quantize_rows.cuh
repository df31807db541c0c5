#pragma once

// Rows to int8, whatever their values come from. A SOURCE is a struct of device pointers with
//   float4 load(int64_t m, int64_t k)                 values k .. k + 3 of row m as they lie in memory, zeros beyond K
//   float4 finish(float4 v, int64_t k, float factor)  what is rotated; factor is norm's result, or 1
//   static constexpr bool NORM                        whether the sum of squares of the loaded row is needed
//   float norm(float squares, int64_t K)              the factor; only called where NORM is set
//
// Half a warp holds GROUPS groups of 256 features in registers. A block takes a whole row, or a part of a long row:
// then one launch finds the parts' largest values and a second one, which reads the row again, quantises.

#include "rotate.cuh"

#include <cstdint>

namespace ggml_ext_cuda {

enum row_mode { WHOLE_ROWS, PART_MAGNITUDES, PART_QUANTIZE };

constexpr int MAX_ROW_THREADS = 512;
constexpr int PART_GROUPS     = 2; // of the kernels for parts of rows
constexpr int PART_FEATURES   = MAX_ROW_THREADS / GROUP_LANES * PART_GROUPS * GROUP;
constexpr int MAX_ROW         = MAX_ROW_THREADS / GROUP_LANES * 4 * GROUP; // features of a whole row in one block

struct row_output {
    int64_t  M, K;
    int8_t * q;
    size_t   q_stride;
    float *  scale;
    int *    magnitudes; // workspace: `parts` a row, the bits of the largest magnitude
    int      parts;
};

__device__ inline int magnitude(float4 v) {
    const int a = max(__float_as_int(fabsf(v.x)), __float_as_int(fabsf(v.y)));
    const int b = max(__float_as_int(fabsf(v.z)), __float_as_int(fabsf(v.w)));
    return max(a, b);
}

__device__ inline int block_max(int v) {
    __shared__ int of_warp[MAX_ROW_THREADS / 32];
    v = __reduce_max_sync(0xFFFFFFFF, v);
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = v;
    }
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return __reduce_max_sync(0xFFFFFFFF, lane < static_cast<int>(blockDim.x / 32) ? of_warp[lane] : 0);
}

__device__ inline float block_sum(float v) {
    __shared__ float of_warp[MAX_ROW_THREADS / 32];
    for (int step = 16; step > 0; step /= 2) {
        v += __shfl_xor_sync(0xFFFFFFFF, v, step);
    }
    if (threadIdx.x % 32 == 0) {
        of_warp[threadIdx.x / 32] = v;
    }
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < static_cast<int>(blockDim.x / 32); i++) {
        sum += of_warp[i];
    }
    return sum;
}

// How one row is scaled: by its largest magnitude.
struct row_scale {
    float scale, inverse;
    bool  zeros, tiny; // tiny: the reciprocal is no finite float

    __device__ explicit row_scale(int largest_bits) {
        const bool finite = largest_bits < 0x7F800000;
        scale             = finite ? __fdiv_rn(__int_as_float(largest_bits), 127.0f) : __int_as_float(0x7FC00000);
        inverse           = __fdiv_rn(1.0f, scale);
        zeros             = !finite || scale == 0.0f;
        tiny              = inverse > 3.402823466e38f;
    }

    __device__ int operator()(float y) const {
        if (zeros) {
            return 0;
        }
        if (tiny) {
            return static_cast<int>(fmin(127.0, fmax(-127.0, rint(static_cast<double>(y) / scale))));
        }
        return __float2int_rn(fmaxf(-127.0f, fminf(127.0f, __fmul_rn(y, inverse))));
    }
};

// W: words of four int8 may be written at once, and K is a multiple of four.
template <bool W> __device__ inline void store_q(int8_t * q, int64_t k, int64_t K, int a, int b, int c, int d) {
    if constexpr (W) {
        const unsigned word = (a & 0xFF) | (b & 0xFF) << 8 | (c & 0xFF) << 16 | static_cast<unsigned>(d) << 24;
        *reinterpret_cast<unsigned *>(q + k) = word;
    } else {
        const int values[4] = {a, b, c, d};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (k + i < K) {
                q[k + i] = static_cast<int8_t>(values[i]);
            }
        }
    }
}

template <class SOURCE, bool ROTATE, bool W, int GROUPS, row_mode MODE>
__global__ void __launch_bounds__(MAX_ROW_THREADS) quantize_rows(SOURCE source, row_output out) {
    extern __shared__ float4 shared[];
    const int     half = threadIdx.x / GROUP_LANES, halves = blockDim.x / GROUP_LANES;
    const int     part  = MODE == WHOLE_ROWS ? 0 : blockIdx.x % out.parts;
    const int64_t m     = MODE == WHOLE_ROWS ? blockIdx.x : blockIdx.x / out.parts;
    const int64_t first = static_cast<int64_t>(part) * PART_FEATURES + threadIdx.x % GROUP_LANES * 4;
    // features of group g of this half warp: first + (g * halves + half) * GROUP + 64 * j
    const auto feature = [&](int g, int j) { return first + (g * halves + half) * GROUP + 64 * j; };
    int8_t *   q       = out.q + m * out.q_stride;

    if (m >= out.M) { // padding
        for (int g = 0; g < GROUPS; g++) {
            for (int j = 0; j < 4; j++) {
                if (MODE != PART_MAGNITUDES && feature(g, j) < out.K) {
                    store_q<W>(q, feature(g, j), out.K, 0, 0, 0, 0);
                }
            }
        }
        return;
    }

    float4 v[GROUPS][4];
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            v[g][j] = feature(g, j) < out.K ? source.load(m, feature(g, j)) : make_float4(0, 0, 0, 0);
        }
    }
    float factor = 1;
    if constexpr (SOURCE::NORM) {
        float squares = 0;
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float4 f = v[g][j];
                squares += f.x * f.x + f.y * f.y + f.z * f.z + f.w * f.w;
            }
        }
        factor = source.norm(block_sum(squares), out.K);
    }
    int largest = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (feature(g, j) < out.K) {
                v[g][j] = source.finish(v[g][j], feature(g, j), factor);
            }
        }
        if constexpr (ROTATE) {
            rotate_group(v[g], reinterpret_cast<float *>(shared) + half * GROUP);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            largest = max(largest, magnitude(v[g][j]));
        }
    }

    if constexpr (MODE != PART_QUANTIZE) {
        largest = block_max(largest);
    }
    if constexpr (MODE == PART_MAGNITUDES) {
        if (threadIdx.x == 0) {
            out.magnitudes[blockIdx.x] = largest;
        }
        return;
    }
    if constexpr (MODE == PART_QUANTIZE) {
        largest = 0;
        for (int i = 0; i < out.parts; i++) {
            largest = max(largest, out.magnitudes[m * out.parts + i]);
        }
    }
    const row_scale scaled(largest);
    if (threadIdx.x == 0 && part == 0) {
        out.scale[m] = scaled.scale;
    }
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float4 f = v[g][j];
            if (feature(g, j) < out.K) {
                store_q<W>(q, feature(g, j), out.K, scaled(f.x), scaled(f.y), scaled(f.z), scaled(f.w));
            }
        }
    }
}

} // namespace ggml_ext_cuda
