#pragma once

// A block takes one token (a position of a batch) and some or all of its heads, or several tokens of few heads: it
// makes the tokens' rotations once, in shared memory, and applies them to every head.

#include "dependent.cuh"
#include "ggml-ext-cuda-kernels/rope.h"

#include <cuda_fp16.h>

namespace ggml_ext_cuda {

struct rope_params {
    ggml_ext_cuda_rope_args   args;
    ggml_ext_cuda_rope_angles angles;         // read where args.pe is NULL
    float                     theta_scale;    // from one pair's angle to the next
    float                     low, high;      // YaRN: pairs between these are interpolated in part
    float                     magnitude;      // of the rotation
    unsigned                  tokens;         // a block; above 1 only where one block has all heads
    unsigned                  table_tokens;   // of these, whose rotations a block's threads make at once
    unsigned                  lane_bits;      // 1 << lane_bits threads hold a row
    bool                      matrix_vectors; // every matrix of pe is aligned to 16 bytes
};

// A pair's angle at position 1, before frequency factors and YaRN. Of memory it needs nothing.
__device__ inline float frequency(const rope_params & p, int pair) {
    return p.args.pe ? 0.0f : powf(p.theta_scale, pair);
}

// [[x, y], [z, w]] of one pair.
__device__ inline float4
rotation(const rope_params & p, int64_t position, int64_t batch, int pair, float pair_frequency) {
    if (p.args.pe) {
        const auto * m =
            reinterpret_cast<const float *>(reinterpret_cast<const char *>(p.args.pe) + batch * p.args.pe_batch +
                                            position * p.args.pe_position + pair * p.args.pe_pair);
        return p.matrix_vectors ? *reinterpret_cast<const float4 *>(m) : make_float4(m[0], m[1], m[2], m[3]);
    }
    float extrapolated = static_cast<float>(p.angles.positions[position]) * pair_frequency;
    if (p.angles.freq_factors) {
        extrapolated /= p.angles.freq_factors[pair];
    }
    float angle = p.angles.freq_scale * extrapolated;
    if (p.angles.ext_factor != 0.0f) {
        const float ramp = (pair - p.low) / fmaxf(0.001f, p.high - p.low);
        const float mix  = (1.0f - fminf(1.0f, fmaxf(0.0f, ramp))) * p.angles.ext_factor;
        angle            = angle * (1.0f - mix) + extrapolated * mix;
    }
    float s, c;
    sincosf(angle, &s, &c);
    s *= p.magnitude;
    c *= p.magnitude;
    return make_float4(c, -s, s, c);
}

// Where a token is; most tensors have one batch, and divisions are dear beside this kernel's little work.
struct token_place {
    unsigned position, batch;

    __device__ token_place(const rope_params & p, unsigned token)
        : position(token), batch(p.args.N == 1 ? 0 : token / static_cast<unsigned>(p.args.L)) {
        position -= batch * static_cast<unsigned>(p.args.L);
    }
};

// One pair's rotations for tokens `token`, `token` + step, ... Laid out so that both kinds of pairs are one formula,
// y[i] = x[i] * own[i] + x[partner(i)] * other[i]: for each token, own of d_rot features, then other.
__device__ inline void fill_table(const rope_params & p,
                                  unsigned            first_token,
                                  unsigned            tokens,
                                  float *             table,
                                  int                 pair,
                                  float               pair_frequency,
                                  unsigned            token,
                                  unsigned            step) {
    const int  d_rot       = static_cast<int>(p.args.d_rot);
    const bool interleaved = p.args.pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED;
    const int  first       = interleaved ? 2 * pair : pair;
    const int  second      = interleaved ? 2 * pair + 1 : pair + d_rot / 2;
    for (; token < tokens; token += step) {
        const token_place at(p, first_token + token);
        const float4      m     = rotation(p, at.position, at.batch, pair, pair_frequency);
        float *           own   = table + token * 2 * d_rot;
        float *           other = own + d_rot;
        own[first]              = m.x;
        other[first]            = m.y;
        other[second]           = m.z;
        own[second]             = m.w;
    }
}

__device__ inline const float * x_row(const rope_params & p, int64_t head, int64_t position, int64_t batch) {
    return reinterpret_cast<const float *>(reinterpret_cast<const char *>(p.args.x) + head * p.args.x_nb1 +
                                           position * p.args.x_nb2 + batch * p.args.x_nb3);
}

template <typename T>
__device__ inline T * dst_row(const rope_params & p, int64_t head, int64_t position, int64_t batch) {
    return reinterpret_cast<T *>(reinterpret_cast<char *>(p.args.dst) + head * p.args.dst_nb1 +
                                 position * p.args.dst_nb2 + batch * p.args.dst_nb3);
}

__device__ inline void store4(float * to, float4 v) {
    *reinterpret_cast<float4 *>(to) = v;
}

__device__ inline void store4(__half * to, float4 v) {
    const __half2 low = __floats2half2_rn(v.x, v.y), high = __floats2half2_rn(v.z, v.w);
    uint2         bits;
    bits.x                         = *reinterpret_cast<const unsigned *>(&low);
    bits.y                         = *reinterpret_cast<const unsigned *>(&high);
    *reinterpret_cast<uint2 *>(to) = bits;
}

__device__ inline void store1(float * to, float v) {
    *to = v;
}

__device__ inline void store1(__half * to, float v) {
    *to = __float2half_rn(v);
}

// Rows in registers: d_head / (4 * V) lanes, a power of two, hold a row, V float4 each; a thread works on UNROLL
// heads at once. What is rotated, and each half of it, starts and ends at a multiple of 4 * V.
template <int V, int UNROLL, typename T> __global__ void __launch_bounds__(256) rope_rows(rope_params p) {
    extern __shared__ float4 table[];
    const unsigned           lanes = 1u << p.lane_bits, lane = threadIdx.x & (lanes - 1);
    const unsigned           rows = blockDim.x >> p.lane_bits, row = threadIdx.x >> p.lane_bits;
    const unsigned           n_head      = static_cast<unsigned>(p.args.n_head);
    const unsigned           total       = static_cast<unsigned>(p.args.L) * static_cast<unsigned>(p.args.N);
    const unsigned           first_token = blockIdx.x * p.tokens, tokens = min(p.tokens, total - first_token);
    const unsigned           local = p.tokens == 1 ? 0 : row / n_head; // which of the block's tokens
    const token_place        at(p, first_token + local);
    const unsigned           position = at.position, batch = at.batch;
    const unsigned           first_head = blockIdx.y * rows * UNROLL + row - local * n_head;
    const bool               idle       = local >= tokens;
    // blocks of several tokens have UNROLL 1
    const auto present = [&](int u) { return !idle && first_head + u * rows < n_head; };

    // which of the table this thread makes: a block has at least as many threads as there are pairs
    const int d_rot       = static_cast<int>(p.args.d_rot);
    int       pair        = threadIdx.x;
    unsigned  table_token = 0;
    for (; pair >= d_rot / 2; pair -= d_rot / 2) {
        table_token++;
    }
    const float pair_frequency = frequency(p, pair);
    // addresses too are made before the wait: parameters take their time when they are first read
    const auto *  x_first   = reinterpret_cast<const char *>(x_row(p, first_head, position, batch) + lane * V * 4);
    auto *        dst_first = reinterpret_cast<char *>(dst_row<T>(p, first_head, position, batch) + lane * V * 4);
    const int64_t x_step = p.args.x_nb1 * rows, dst_step = p.args.dst_nb1 * rows;
    wait_for_work_before();

    float4 x[UNROLL][V];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
#pragma unroll
        for (int v = 0; v < V; v++) {
            x[u][v] = present(u) ? reinterpret_cast<const float4 *>(x_first + u * x_step)[v] : make_float4(0, 0, 0, 0);
        }
    }
    float4 weight[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        weight[v] = p.args.norm && p.args.weight ? reinterpret_cast<const float4 *>(p.args.weight)[lane * V + v]
                                                 : make_float4(1, 1, 1, 1);
    }

    let_next_begin();
    if (table_token < p.table_tokens) {
        fill_table(p, first_token, tokens, reinterpret_cast<float *>(table), pair, pair_frequency, table_token,
                   p.table_tokens);
    }
    __syncthreads();

    // Where in the rotated part this thread's features are, and which lane holds their partners.
    const int  offset      = static_cast<int>(lane * 4 * V) - static_cast<int>(p.args.rot_first);
    const bool rotated     = offset >= 0 && offset < d_rot && !idle;
    const bool interleaved = p.args.pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED;
    const int  half_lanes  = d_rot / (8 * V);
    const int  partner     = lane + (!rotated || interleaved ? 0 : offset < d_rot / 2 ? half_lanes
                                                                                      : -half_lanes);
    const auto entry       = table + local * (d_rot / 2) + offset / 4;
    float4     own[V], other[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        own[v]   = rotated ? entry[v] : make_float4(1, 1, 1, 1);
        other[v] = rotated ? entry[d_rot / 4 + v] : make_float4(0, 0, 0, 0);
    }

#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
        if (p.args.norm) {
            float squares = 0;
#pragma unroll
            for (int v = 0; v < V; v++) {
                const float4 f = x[u][v];
                squares += f.x * f.x + f.y * f.y + f.z * f.z + f.w * f.w;
            }
            for (unsigned step = lanes / 2; step > 0; step /= 2) {
                squares += __shfl_xor_sync(0xFFFFFFFF, squares, step);
            }
            const float factor = rsqrtf(squares / static_cast<float>(p.args.d_head) + p.args.eps);
#pragma unroll
            for (int v = 0; v < V; v++) {
                float4 & f = x[u][v];
                f          = make_float4(f.x * factor * weight[v].x, f.y * factor * weight[v].y, f.z * factor * weight[v].z,
                                         f.w * factor * weight[v].w);
            }
        }
#pragma unroll
        for (int v = 0; v < V; v++) {
            const float4 f = x[u][v];
            float4       g;
            if (interleaved) {
                g = make_float4(f.y, f.x, f.w, f.z);
            } else {
                g.x = __shfl_sync(0xFFFFFFFF, f.x, partner, lanes);
                g.y = __shfl_sync(0xFFFFFFFF, f.y, partner, lanes);
                g.z = __shfl_sync(0xFFFFFFFF, f.z, partner, lanes);
                g.w = __shfl_sync(0xFFFFFFFF, f.w, partner, lanes);
            }
            float4 y = f;
            if (rotated) {
                y = make_float4(f.x * own[v].x + g.x * other[v].x, f.y * own[v].y + g.y * other[v].y,
                                f.z * own[v].z + g.z * other[v].z, f.w * own[v].w + g.w * other[v].w);
            }
            const float s = p.args.scale;
            if (present(u)) {
                store4(reinterpret_cast<T *>(dst_first + u * dst_step) + v * 4,
                       make_float4(y.x * s, y.y * s, y.z * s, y.w * s));
            }
        }
    }
}

// Any shape and alignment: a warp takes a row, pair by pair.
template <typename T> __global__ void __launch_bounds__(256) rope_any(rope_params p) {
    extern __shared__ float4 table[];
    const token_place        at(p, blockIdx.x);
    const unsigned           position = at.position, batch = at.batch;
    const int                d_head = static_cast<int>(p.args.d_head), d_rot = static_cast<int>(p.args.d_rot);
    const int                rot_first = static_cast<int>(p.args.rot_first), lane = threadIdx.x % 32;
    float *                  own   = reinterpret_cast<float *>(table);
    float *                  other = own + d_rot;
    wait_for_work_before();
    for (int pair = threadIdx.x; pair < d_rot / 2; pair += blockDim.x) {
        fill_table(p, blockIdx.x, 1, own, pair, frequency(p, pair), 0, 1);
    }
    __syncthreads();

    const int64_t warps = blockDim.x / 32;
    for (int64_t head = blockIdx.y * warps + threadIdx.x / 32; head < p.args.n_head; head += warps * gridDim.y) {
        const float * x      = x_row(p, head, position, batch);
        T *           dst    = dst_row<T>(p, head, position, batch);
        float         factor = 1;
        if (p.args.norm) {
            float squares = 0;
            for (int i = lane; i < d_head; i += 32) {
                squares += x[i] * x[i];
            }
            for (int step = 16; step > 0; step /= 2) {
                squares += __shfl_xor_sync(0xFFFFFFFF, squares, step);
            }
            factor = rsqrtf(squares / static_cast<float>(d_head) + p.args.eps);
        }
        const auto value = [&](int i) {
            return !p.args.norm ? x[i] : p.args.weight ? x[i] * factor * p.args.weight[i]
                                                       : x[i] * factor;
        };
        for (int i = lane; i < d_rot / 2; i += 32) {
            const bool  interleaved = p.args.pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED;
            const int   first       = interleaved ? 2 * i : i;
            const int   second      = interleaved ? 2 * i + 1 : i + d_rot / 2;
            const float a = value(rot_first + first), b = value(rot_first + second);
            store1(dst + rot_first + first, (a * own[first] + b * other[first]) * p.args.scale);
            store1(dst + rot_first + second, (b * own[second] + a * other[second]) * p.args.scale);
        }
        for (int i = lane; i < d_head - d_rot; i += 32) {
            const int at = i < rot_first ? i : i + d_rot;
            store1(dst + at, value(at) * p.args.scale);
        }
    }
}

} // namespace ggml_ext_cuda
