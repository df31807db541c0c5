// The blocked F32 product, compiled once for each instruction set.
//
// A block of x (MC rows, KC deep) is packed into scratch, tile by tile, and stays in L2; a panel of weights
// (KC deep, NR wide) passes through L1; a register tile of MR x NR sums runs over the depth of the block.

#include "kernel.h"
#include "simd.h"
#include "vmath.h"

namespace {

constexpr int     NR       = 2 * LANES;
constexpr int64_t MC       = 144; // a multiple of every GEMM_MR
constexpr int     MIN_SUMS = 8;   // independent chains that hide the latency of a fused multiply-add

void pack_panel(const float * w, size_t w_stride, int64_t columns, int64_t k, float * panel) {
    for (int j = 0; j < NR; j++) {
        if (j >= columns) {
            for (int64_t i = 0; i < k; i++) {
                panel[i * NR + j] = 0.0f;
            }
            continue;
        }
        const float * row =
            reinterpret_cast<const float *>(reinterpret_cast<const char *>(w) + static_cast<size_t>(j) * w_stride);
        for (int64_t i = 0; i < k; i++) {
            panel[i * NR + j] = row[i];
        }
    }
}

// rows rows of x, interleaved: out[i*rows + r] = x[r][i].
void pack_rows(const float * x, size_t x_stride, int rows, int64_t depth, float * out) {
    for (int r = 0; r < rows; r++) {
        const float * row =
            reinterpret_cast<const float *>(reinterpret_cast<const char *>(x) + static_cast<size_t>(r) * x_stride);
        for (int64_t i = 0; i < depth; i++) {
            out[i * rows + r] = row[i];
        }
    }
}

struct output {
    float *       dst; // first element of the tile
    size_t        stride;
    const float * bias; // of the first column, or null
    int           columns;
    bool          first, last; // of the blocks of K
    int           activation;
};

float * row_of(const output & out, int r) {
    return reinterpret_cast<float *>(reinterpret_cast<char *>(out.dst) + static_cast<size_t>(r) * out.stride);
}

__attribute__((noinline)) void activate(const output & out, int rows) {
    for (int r = 0; r < rows; r++) {
        float * c = row_of(out, r);
        int     j = 0;
        for (; j + LANES <= out.columns; j += LANES) {
            store(c + j, gelu_erf(load(c + j)));
        }
        if (j < out.columns) {
            store_n(c + j, gelu_erf(load_n(c + j, out.columns - j)), out.columns - j);
        }
    }
}

// Not inlined, and no second loop where one step is all: else the sums leave their registers.
template <int MR>
__attribute__((noinline)) void accumulate(int64_t depth, const float * x, const float * w, vf (&totals)[MR][2]) {
    constexpr int U = 2 * MR >= MIN_SUMS ? 1 : MIN_SUMS / (2 * MR); // steps of k with sums of their own

    vf      sums[U][MR][2] = {};
    int64_t i              = 0;
    for (; i + U <= depth; i += U) {
#pragma GCC unroll 4
        for (int u = 0; u < U; u++) {
            const vf w0 = load(w), w1 = load(w + LANES);
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                const vf a    = set1(x[r]);
                sums[u][r][0] = fma(a, w0, sums[u][r][0]);
                sums[u][r][1] = fma(a, w1, sums[u][r][1]);
            }
            x += MR;
            w += NR;
        }
    }
    if constexpr (U > 1) {
        for (; i < depth; i++, x += MR, w += NR) {
            const vf w0 = load(w), w1 = load(w + LANES);
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                const vf a    = set1(x[r]);
                sums[0][r][0] = fma(a, w0, sums[0][r][0]);
                sums[0][r][1] = fma(a, w1, sums[0][r][1]);
            }
        }
#pragma GCC unroll 4
        for (int u = 1; u < U; u++) {
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                sums[0][r][0] += sums[u][r][0];
                sums[0][r][1] += sums[u][r][1];
            }
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        totals[r][0] += sums[0][r][0];
        totals[r][1] += sums[0][r][1];
    }
}

// Terms that one chain of additions sums up: rounding grows with a chain's length, and ggml's own product has short ones.
constexpr int64_t CHAIN = 48;

template <int MR> void tile(int64_t depth, const float * x, const float * w, const output & out) {
    alignas(sizeof(vf)) vf totals[MR][2] = {}; // a template knows of no smaller alignment
    for (int64_t i = 0; i < depth; i += CHAIN) {
        accumulate<MR>(min64(CHAIN, depth - i), x + i * MR, w + i * NR, totals);
    }

    const int n0 = out.columns < LANES ? out.columns : LANES;
    const int n1 = out.columns - n0;
    if (out.columns == NR) {
        const vf b0 = out.last && out.bias ? load(out.bias) : vf{};
        const vf b1 = out.last && out.bias ? load(out.bias + LANES) : vf{};
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            float * c  = row_of(out, r);
            vf      s0 = totals[r][0], s1 = totals[r][1];
            if (!out.first) {
                s0 += load(c);
                s1 += load(c + LANES);
            }
            store(c, s0 + b0);
            store(c + LANES, s1 + b1);
        }
    } else {
        const vf b0 = out.last && out.bias ? load_n(out.bias, n0) : vf{};
        const vf b1 = out.last && out.bias ? load_n(out.bias + n0, n1) : vf{};
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            float * c  = row_of(out, r);
            vf      s0 = totals[r][0], s1 = totals[r][1];
            if (!out.first) {
                s0 += load_n(c, n0);
                s1 += load_n(c + n0, n1);
            }
            store_n(c, s0 + b0, n0);
            store_n(c + n0, s1 + b1, n1);
        }
    }
    if (out.last && out.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
        activate(out, MR);
    }
}

template <int MR> void tile_of(int rows, int64_t depth, const float * x, const float * w, const output & out) {
    if (rows == MR) {
        tile<MR>(depth, x, w, out);
    } else if constexpr (MR > 1) {
        tile_of<MR - 1>(rows, depth, x, w, out);
    }
}

void run(
    const ggml_ext_cpu_gemm_f32_args & args, const float * panels, range rows, range panel_range, float * scratch) {
    const int64_t k_blocks = (args.K + F32_KC - 1) / F32_KC;
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        const int64_t block_rows = min64(MC, rows.end - m0);
        const int64_t tiles      = (block_rows + GEMM_MR - 1) / GEMM_MR; // of equal height, plus or minus one row
        for (int64_t kb = 0; kb < k_blocks; kb++) {
            const range   k     = share(args.K, kb, k_blocks);
            const int64_t depth = k.end - k.begin;
            for (int64_t t = 0; t < tiles; t++) {
                const range   r   = share(block_rows, t, tiles);
                const float * row = reinterpret_cast<const float *>(reinterpret_cast<const char *>(args.x) +
                                                                    static_cast<size_t>(m0 + r.begin) * args.x_stride);
                pack_rows(row + k.begin, args.x_stride, static_cast<int>(r.end - r.begin), depth,
                          scratch + r.begin * depth);
            }
            for (int64_t p = panel_range.begin; p < panel_range.end; p++) {
                const float * w = panels + p * args.K * NR + k.begin * NR;
                for (int64_t t = 0; t < tiles; t++) {
                    const range r = share(block_rows, t, tiles);
                    output      out;
                    out.stride = args.dst_stride;
                    out.dst    = reinterpret_cast<float *>(reinterpret_cast<char *>(args.dst) +
                                                           static_cast<size_t>(m0 + r.begin) * args.dst_stride) +
                              p * NR;
                    out.bias       = args.bias ? args.bias + p * NR : nullptr;
                    out.columns    = static_cast<int>(min64(NR, args.N - p * NR));
                    out.first      = kb == 0;
                    out.last       = kb == k_blocks - 1;
                    out.activation = args.activation;
                    tile_of<GEMM_MR>(static_cast<int>(r.end - r.begin), depth, scratch + r.begin * depth, w, out);
                }
            }
        }
    }
}

} // namespace

const gemm_f32_kernels GGML_EXT_KERNELS(gemm_f32) = {GEMM_MR, NR, MC, F32_KC, pack_panel, run};
