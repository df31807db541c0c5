#pragma once

// Where a tile of sums goes, and what is made of it: scales, bias, activation.

#include "ggml-ext-kernels/gemm_i8.h"
#include "row_vectors.h"
#include "tile_size.h"
#include "vmath.h"

namespace {

struct output {
    float *         dst; // first element of the tile
    size_t          stride;
    const float *   x_scale; // of the first row, or null
    int64_t         x_step;  // 0 where one scale serves all rows
    const float *   w_scale; // of the first column, or null
    bool            one_w_scale;
    const float *   bias;
    const int32_t * start;      // what the sums of the first row begin with
    int64_t         start_step; // from row to row
    int             columns;
    bool            first, last;
    int             activation;
};

// The tile of `columns` columns that begins at row m and column n.
inline output output_of(const ggml_ext_cpu_gemm_i8_args & args, int64_t m, int64_t n, int64_t columns) {
    output out      = {};
    out.stride      = args.dst_stride;
    out.dst         = reinterpret_cast<float *>(reinterpret_cast<char *>(args.dst) + static_cast<size_t>(m) * args.dst_stride) + n;
    out.x_step      = args.x_scales == 1 ? 0 : 1;
    out.x_scale     = args.x_scale ? args.x_scale + m * out.x_step : nullptr;
    out.one_w_scale = args.w_scales == 1;
    out.w_scale     = args.w_scale ? args.w_scale + (out.one_w_scale ? 0 : n) : nullptr;
    out.bias        = args.bias ? args.bias + n : nullptr;
    out.columns     = static_cast<int>(columns);
    out.activation  = args.activation;
    return out;
}

inline float * row_of(const output & out, int64_t r) {
    return reinterpret_cast<float *>(reinterpret_cast<char *>(out.dst) + static_cast<size_t>(r) * out.stride);
}

// The same columns of later rows.
inline output rows_from(output out, int64_t row) {
    out.dst     = row_of(out, row);
    out.x_scale = out.x_scale ? out.x_scale + row * out.x_step : nullptr;
    return out;
}

// Multiplying by 1 and adding -0 change no value; adding 0 would turn -0 into 0.
vf row_scale(const output & out, int r) {
    return set1(out.x_scale ? out.x_scale[r * out.x_step] : 1.0f);
}
vf column_scale(const output & out, int first, int n) {
    return !out.w_scale ? set1(1.0f) : out.one_w_scale ? set1(*out.w_scale)
                                                       : take(out.w_scale + first, n);
}
vf column_bias(const output & out, int first, int n) {
    return out.bias ? take(out.bias + first, n) : set1(-0.0f);
}
inline vf scaled(vi sum, vf x_scale, vf w_scale) {
    return to_float(sum) * x_scale * w_scale;
}

// NR columns of MR rows of finished sums.
template <int MR, bool BIAS> inline __attribute__((always_inline)) void store_scaled(const output & out, const vi (&sums)[MR][2]) {
    const vf w0 = column_scale(out, 0, LANES), w1 = column_scale(out, LANES, LANES);
    const vf b0 = column_bias(out, 0, LANES), b1 = column_bias(out, LANES, LANES);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        float *  c  = row_of(out, r);
        const vf a  = row_scale(out, r);
        const vf v0 = scaled(sums[r][0], a, w0), v1 = scaled(sums[r][1], a, w1);
        store(c, BIAS ? v0 + b0 : v0);
        store(c + LANES, BIAS ? v1 + b1 : v1);
    }
}

// Scales, bias and activation, from registers.
template <int MR> inline __attribute__((always_inline)) void finish_whole(const output & out, const vi (&sums)[MR][2]) {
    out.bias ? store_scaled<MR, true>(out, sums) : store_scaled<MR, false>(out, sums);
    if (out.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
        gelu_erf_tile(out.dst, out.stride, MR, NR);
    }
}

// Scales, bias and activation over a tile of finished sums, `sums_stride` bytes from row to row; they may lie where the results go.
__attribute__((noinline)) void finish(const output & out, int rows, const void * sums, size_t sums_stride) {
    for (int first = 0; first < out.columns; first += LANES) {
        const int n = out.columns - first < LANES ? out.columns - first : LANES;
        const vf  w = column_scale(out, first, n);
        const vf  b = column_bias(out, first, n);
        for (int r = 0; r < rows; r++) {
            const char * row = static_cast<const char *>(sums) + static_cast<size_t>(r) * sums_stride;
            float *      c   = row_of(out, r) + first;
            vf           v   = scaled(bits(take(reinterpret_cast<const float *>(row) + first, n)), row_scale(out, r), w) + b;
            if (out.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
                v = gelu_erf(v);
            }
            put(c, v, n);
        }
    }
}

} // namespace
