// The blocked F32 product, compiled once for each instruction set.
//
// A block of x (MC rows, as deep as L2 has room) is packed into scratch, tile by tile, and stays in L2; a panel of weights
// (as deep, NR wide) passes through L1, the next one on its way to L2; a register tile of MR x NR sums runs over the depth of the
// block.

#include "kernel.h"
#include "prefetch.h"
#include "simd.h"
#include "vmath.h"

namespace {

constexpr int     NR       = 2 * LANES;
constexpr int64_t MC       = 144; // a multiple of every GEMM_MR
constexpr int     STEPS    = 4;   // of K, in which a row of a packed tile lies together: packing it moves them as one
constexpr int     MIN_SUMS = 8;   // independent chains that hide the latency of a fused multiply-add

// K is cut for x and a panel to stay in their caches while all tiles use them.
int64_t depth_of_block(int64_t M, int64_t K) {
    return min64(K, BLOCK_BYTES / ((min64(MC, M) + NR) * int64_t{sizeof(float)}));
}

int64_t packed_depth(int64_t depth) {
    return (depth + STEPS - 1) / STEPS * STEPS;
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(min64(MC, M) * packed_depth(depth_of_block(M, K))) * sizeof(float);
}

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

const float * row_of(const float * x, size_t x_stride, int r) {
    return reinterpret_cast<const float *>(reinterpret_cast<const char *>(x) + static_cast<size_t>(r) * x_stride);
}

// out[i/STEPS][r][i%STEPS] = x[r][i]
void pack_rows(const float * x, size_t x_stride, int rows, int64_t depth, float * out) {
    for (int r = 0; r < rows; r++) {
        const float * row = row_of(x, x_stride, r);
        float *       to  = out + r * STEPS;
        int64_t       i   = 0;
        for (; i + STEPS <= depth; i += STEPS, to += rows * STEPS) {
            *reinterpret_cast<four *>(to) = *reinterpret_cast<const four *>(row + i);
        }
        for (; i < depth; i++) {
            *to++ = row[i];
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

// A chain of additions sums up 48 terms: rounding grows with a chain's length, and ggml's own product has short ones. The chains of
// a tile's two columns of vectors end in turns: Zen 3 hides the stores of one column behind the multiplications, not those of two.
constexpr int64_t HALF_CHAIN = 24;

// So many of a tile's rows leave it to each multiplication to broadcast x: fewer instructions, which count where another thread shares
// the core, but more reads of memory, two a cycle at most.
template <int MR> constexpr int BROADCAST_BY_FMA = LANES == 16 && MR >= 8 ? MR / 2 : 0;

// Step u of K, for which x is at its own place in each row's STEPS. U steps have sums of their own.
template <int U, int MR>
inline __attribute__((always_inline)) void add_products(int u, const float * x, const float * w, vf (&sums)[U][MR][2]) {
    const vf w0 = load(w), w1 = load(w + LANES);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        if (r < BROADCAST_BY_FMA<MR>) {
            add_product(sums[u % U][r][0], x[r * STEPS], w0);
            add_product(sums[u % U][r][1], x[r * STEPS], w1);
        } else {
            const vf a = set1(x[r * STEPS]);
            add_product(sums[u % U][r][0], a, w0);
            add_product(sums[u % U][r][1], a, w1);
        }
    }
}

template <int U, int MR>
inline __attribute__((always_inline)) void add_steps(const float *& x, const float *& w, vf (&sums)[U][MR][2]) {
    static_assert(STEPS % U == 0, "whole steps");
#pragma GCC unroll 4
    for (int u = 0; u < STEPS; u++) {
        add_products(u, x + u, w + u * NR, sums);
        __asm__ volatile("" ::: "memory"); // else the next step's loads come first, and drive sums from their registers
    }
    x += STEPS * MR;
    w += STEPS * NR;
}

template <int U, int MR>
inline __attribute__((always_inline)) void add_half_chain(const float *& x, const float *& w, vf (&sums)[U][MR][2]) {
    static_assert(HALF_CHAIN % STEPS == 0, "whole steps");
    for (int64_t i = 0; i < HALF_CHAIN; i += STEPS) {
        add_steps(x, w, sums);
    }
}

// The sums of column J, of all steps, into those of the first.
template <int J, int U, int MR>
inline __attribute__((always_inline)) void join(vf (&sums)[U][MR][2]) {
    static_assert(J < 2, "columns of vectors");
#pragma GCC unroll 4
    for (int u = 1; u < U; u++) {
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            sums[0][r][J] += sums[u][r][J];
            sums[u][r][J] = vf{};
        }
    }
}

// Ends the chains of column J; the totals before are read where `before` says. Returns where they are from now on.
template <int J, int U, int MR>
inline __attribute__((always_inline)) const vf * end_chains(const vf * before, vf (&sums)[U][MR][2], vf (&totals)[2][MR]) {
    join<J>(sums);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        totals[J][r]  = before[r] + sums[0][r][J];
        sums[0][r][J] = vf{};
    }
    __asm__ volatile("" ::: "memory"); // else the compiler keeps copies of the totals, for which there are no registers
    return totals[J];
}

template <int MR, int U>
__attribute__((noinline)) void tile(int64_t depth, const float * x, const float * w, const output & out, prefetch next) {
    static const vf        ZEROS[MR] = {};
    alignas(sizeof(vf)) vf totals[2][MR]; // a template knows of no smaller alignment
    vf                     sums[U][MR][2] = {};
    const vf *             before0 = ZEROS, *before1 = ZEROS;

    fetch_to_write(out.dst, out.stride, MR, NR * int64_t{sizeof(float)});
    for (;;) {
        next.some();
        if (depth <= HALF_CHAIN) {
            break;
        }
        add_half_chain(x, w, sums);
        depth -= HALF_CHAIN;
        before0 = end_chains<0>(before0, sums, totals);

        next.some();
        if (depth <= HALF_CHAIN) {
            break;
        }
        add_half_chain(x, w, sums);
        depth -= HALF_CHAIN;
        before1 = end_chains<1>(before1, sums, totals);
    }
    for (; depth >= STEPS; depth -= STEPS) {
        add_steps(x, w, sums);
    }
    for (; depth > 0; depth--, x++, w += NR) {
        add_products(0, x, w, sums);
    }
    join<0>(sums);
    join<1>(sums);

    const int n0 = out.columns < LANES ? out.columns : LANES;
    const int n1 = out.columns - n0;
    if (out.columns == NR) {
        const vf b0 = out.last && out.bias ? load(out.bias) : vf{};
        const vf b1 = out.last && out.bias ? load(out.bias + LANES) : vf{};
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            float * c  = row_of(out, r);
            vf      s0 = before0[r] + sums[0][r][0], s1 = before1[r] + sums[0][r][1];
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
            vf      s0 = before0[r] + sums[0][r][0], s1 = before1[r] + sums[0][r][1];
            if (!out.first) {
                s0 += load_n(c, n0);
                s1 += load_n(c + n0, n1);
            }
            store_n(c, s0 + b0, n0);
            store_n(c + n0, s1 + b1, n1);
        }
    }
    if (out.last && out.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
        gelu_erf_tile(out.dst, out.stride, MR, out.columns);
    }
}

// A tile's height depends on the threads, so that only the product's may say how a row is summed up.
template <int MR>
void tile_of(int64_t M, int rows, int64_t depth, const float * x, const float * w, const output & out, const prefetch & next) {
    if (M == 1) {
        tile<1, MIN_SUMS / 2>(depth, x, w, out, next);
    } else if (M == 2) {
        tile<2, MIN_SUMS / 4>(depth, x, w, out, next);
    } else if (rows == MR) {
        tile<MR, 1>(depth, x, w, out, next);
    } else if constexpr (MR > 1) {
        tile_of<MR - 1>(M, rows, depth, x, w, out, next);
    }
}

void run(
    const ggml_ext_cpu_gemm_f32_args & args, const float * panels, range rows, range panel_range, float * scratch) {
    const int64_t kc       = depth_of_block(args.M, args.K);
    const int64_t k_blocks = (args.K + kc - 1) / kc;
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        const int64_t block_rows = min64(MC, rows.end - m0);
        const int64_t tiles      = (block_rows + GEMM_MR - 1) / GEMM_MR; // of equal height, plus or minus one row
        for (int64_t kb = 0; kb < k_blocks; kb++) {
            const range   k     = share(args.K, kb, k_blocks);
            const int64_t depth = k.end - k.begin, halves = (depth + HALF_CHAIN - 1) / HALF_CHAIN;
            for (int64_t t = 0; t < tiles; t++) {
                const range   r   = share(block_rows, t, tiles);
                const float * row = reinterpret_cast<const float *>(reinterpret_cast<const char *>(args.x) +
                                                                    static_cast<size_t>(m0 + r.begin) * args.x_stride);
                pack_rows(row + k.begin, args.x_stride, static_cast<int>(r.end - r.begin), depth,
                          scratch + r.begin * packed_depth(depth));
            }
            for (int64_t p = panel_range.begin; p < panel_range.end; p++) {
                const float * w       = panels + p * args.K * NR + k.begin * NR;
                const bool    fetches = tiles > 1 && p + 1 < panel_range.end; // a single tile reads its panel fast enough itself
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
                    tile_of<GEMM_MR>(args.M, static_cast<int>(r.end - r.begin), depth, scratch + r.begin * packed_depth(depth), w, out,
                                     fetches ? prefetch_share(reinterpret_cast<const char *>(w + args.K * NR),
                                                              depth * NR * int64_t{sizeof(float)}, t, tiles, halves)
                                             : prefetch{});
                }
            }
        }
    }
}

} // namespace

const gemm_f32_kernels GGML_EXT_KERNELS(gemm_f32) = {GEMM_MR, NR, scratch_size, pack_panel, run};
