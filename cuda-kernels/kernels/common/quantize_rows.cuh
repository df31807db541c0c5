#pragma once

// Rows to int8, whatever their values come from. A SOURCE is a struct of device pointers with
//   float4 load(int64_t m, int k)                 values k .. k + 3 of row m as they lie in memory, zeros beyond K
//   float4 finish(float4 v, int k, float factor)  what is rotated; factor is norm's result, or 1
//   static constexpr bool NORM                    whether the sum of squares of the loaded row is needed
//   float norm(float squares, int64_t K)          the factor; only called where NORM is set
//
// Half a warp holds GROUPS groups of 256 features in registers. A block takes a whole row, or a part of a long row:
// then one launch finds the parts' largest values and a second one, which reads the row again, quantises.

#include "dependent.cuh"
#include "rotate.cuh"

#include <cstdint>

namespace ggml_ext_cuda {

enum row_mode {
    WHOLE_ROWS,
    PART_MAGNITUDES,
    PART_QUANTIZE
};

// Threads of a block, and blocks of that size that a multiprocessor should have registers for, by GROUPS: enough loads
// in flight to fill the memory's bandwidth.
template <int GROUPS> struct row_block;
template <> struct row_block<1> {
    static constexpr int THREADS = 256, BLOCKS = 5;
};
template <> struct row_block<2> {
    static constexpr int THREADS = 384, BLOCKS = 2;
};
template <> struct row_block<4> {
    static constexpr int THREADS = 512, BLOCKS = 1;
};

constexpr int MAX_ROW_THREADS = 512;
constexpr int PART_GROUPS     = 2; // of the kernels for parts of rows
constexpr int PART_THREADS    = row_block<PART_GROUPS>::THREADS;
constexpr int PART_FEATURES   = PART_THREADS / GROUP_LANES * PART_GROUPS * GROUP;
constexpr int MAX_ROW         = row_block<4>::THREADS / GROUP_LANES * 4 * GROUP; // features of a row in one block

struct row_output {
    int64_t  M, K;
    int8_t * q;
    size_t   q_stride;
    float *  scale;
    int *    magnitudes; // workspace: `parts` a row, the bits of the largest magnitude
    int      parts;
};

// The larger of a magnitude and |v|; NaN where either is one.
__device__ inline float larger(float magnitude, float v) {
    float result;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(magnitude), "f"(fabsf(v)));
    return result;
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

// How one row is scaled: by the bits of its largest magnitude, where a NaN's are above an infinity's.
struct row_scale {
    float scale, inverse;
    bool  plain; // the reciprocal is a finite float

    __device__ explicit row_scale(int largest_bits) {
        scale =
            largest_bits < 0x7F800000 ? __fdiv_rn(__int_as_float(largest_bits), 127.0f) : __int_as_float(0x7FC00000);
        inverse = __fdiv_rn(1.0f, scale);
        plain   = inverse <= 3.402823466e38f;
    }

    // Rounded half to even into the low byte; the other bytes are rubbish. Only where plain: then the product is at
    // most 127 and a few units of its last place, and adding 1.5 * 2^23 leaves the rounded integer in the low bits.
    __device__ unsigned fast(float y) const { return __float_as_uint(__fadd_rn(__fmul_rn(y, inverse), 12582912.0f)); }

    // Zeros where the scale is zero or NaN; scales whose reciprocal overflows divide in double.
    __device__ unsigned slow(float y) const {
        const double q = rint(static_cast<double>(y) / scale);
        return scale > 0.0f ? static_cast<unsigned>(static_cast<int>(fmin(127.0, fmax(-127.0, q)))) : 0;
    }
};

// The low bytes of a, b, c, d to q[k] and after. W: words of four may be written, and K is a multiple of four.
template <bool W>
__device__ inline void store_q(int8_t * q, int k, int K, unsigned a, unsigned b, unsigned c, unsigned d) {
    if constexpr (W) {
        *reinterpret_cast<unsigned *>(q + k) =
            __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
    } else {
        const unsigned values[4] = {a, b, c, d};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (k + i < K) {
                q[k + i] = static_cast<int8_t>(values[i]);
            }
        }
    }
}

template <class SOURCE, bool ROTATE, bool W, int GROUPS, row_mode MODE>
__global__ void __launch_bounds__(row_block<GROUPS>::THREADS, row_block<GROUPS>::BLOCKS)
    quantize_rows(SOURCE source, row_output out) {
    extern __shared__ float4 shared[];
    const int                half = threadIdx.x / GROUP_LANES, halves = blockDim.x / GROUP_LANES;
    const int                part  = MODE == WHOLE_ROWS ? 0 : blockIdx.x % out.parts;
    const int64_t            m     = MODE == WHOLE_ROWS ? blockIdx.x : blockIdx.x / out.parts;
    const int                K     = static_cast<int>(out.K);
    const int                first = part * PART_FEATURES + half * GROUP + threadIdx.x % GROUP_LANES * 4;
    int8_t *                 q     = out.q + m * out.q_stride;

    // this thread's float4 number j of its group number g
    const auto feature = [&](int g, int j) { return first + g * halves * GROUP + 64 * j; };
    const auto inside  = [&](int g, int j) { return feature(g, ROTATE ? 0 : j) < K; }; // a rotated group is whole

    wait_for_work_before();
    if (m >= out.M) { // padding
        for (int g = 0; g < GROUPS; g++) {
            for (int j = 0; j < 4; j++) {
                if (inside(g, j)) {
                    store_q<W>(q, feature(g, j), K, 0, 0, 0, 0);
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
            v[g][j] = inside(g, j) ? source.load(m, feature(g, j)) : make_float4(0, 0, 0, 0);
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
    float magnitude = 0;
#pragma unroll
    for (int g = 0; g < GROUPS; g++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            if (inside(g, j)) {
                v[g][j] = source.finish(v[g][j], feature(g, j), factor);
            }
        }
        if constexpr (ROTATE) {
            rotate_group(v[g], shared);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const float4 f = v[g][j];
            magnitude      = larger(larger(larger(larger(magnitude, f.x), f.y), f.z), f.w);
        }
    }

    int largest = __float_as_int(magnitude);
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
    const row_scale by(largest);
    if (threadIdx.x == 0 && part == 0) {
        out.scale[m] = by.scale;
    }
    if (by.plain) {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float4 f = v[g][j];
                if (inside(g, j)) {
                    store_q<W>(q, feature(g, j), K, by.fast(f.x), by.fast(f.y), by.fast(f.z), by.fast(f.w));
                }
            }
        }
    } else {
#pragma unroll
        for (int g = 0; g < GROUPS; g++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float4 f = v[g][j];
                if (inside(g, j)) {
                    store_q<W>(q, feature(g, j), K, by.slow(f.x), by.slow(f.y), by.slow(f.z), by.slow(f.w));
                }
            }
        }
    }
}

} // namespace ggml_ext_cuda
