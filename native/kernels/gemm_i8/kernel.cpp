// The blocked INT8 product, compiled once for each instruction set; blocking as in gemm_f32. Sums of earlier
// blocks of K wait, as int32, where the float results will be.

#include "kernel.h"
#include "dot.h"
#include "interleave.h"
#include "prefetch.h"
#include "tile_output.h"

namespace {

constexpr int     NR           = 2 * LANES;
constexpr int64_t MC           = 144;
constexpr int     MIN_SUMS     = 6;
constexpr int64_t FETCH_GROUPS = 48; // between two portions of the next panel

int64_t groups_of(int64_t k) {
    return (k + K_GROUP - 1) / K_GROUP;
}

size_t panel_bytes(int64_t k) {
    return NR * sizeof(int32_t) + static_cast<size_t>(groups_of(k)) * NR * K_GROUP;
}

// K is cut for x and a panel to stay in their caches while all tiles use them.
int64_t depth_of_block(int64_t M, int64_t K) {
    return min64(K, BLOCK_BYTES / (min64(MC, M) * int64_t{sizeof(x_element)} + NR));
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(min64(MC, M) * groups_of(depth_of_block(M, K))) * K_GROUP * sizeof(x_element);
}

void pack_panel(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    int8_t * out = reinterpret_cast<int8_t *>(panel + NR * sizeof(int32_t));
    memset(panel, 0, panel_bytes(k));
    for (int64_t j = 0; j < columns; j++) {
        const int8_t * row   = w + static_cast<size_t>(j) * w_stride;
        int32_t        total = 0;
        for (int64_t i = 0; i < k; i++) {
            out[(i / K_GROUP * NR + j) * K_GROUP + i % K_GROUP] = row[i];
            total += row[i];
        }
        const int32_t start = -X_OFFSET * total;
        memcpy(panel + static_cast<size_t>(j) * sizeof(start), &start, sizeof(start));
    }
}

// The groups of k from `begin` on of one row, at words g*rows of out.
void pack_row(const int8_t * x, int rows, int64_t begin, int64_t depth, x_element * out) {
    int64_t i = begin;
    for (; i + K_GROUP <= depth; i += K_GROUP) {
        x_element group[K_GROUP];
        for (int j = 0; j < K_GROUP; j++) {
            group[j] = static_cast<x_element>(x[i + j] + X_OFFSET);
        }
        memcpy(out + i * rows, group, sizeof(group));
    }
    if (i < depth) {
        x_element group[K_GROUP] = {};
        for (int j = 0; i + j < depth; j++) {
            group[j] = static_cast<x_element>(x[i + j] + X_OFFSET);
        }
        memcpy(out + i * rows, group, sizeof(group));
    }
}

// rows rows of x, widened, groups interleaved: group g of row r is at 32-bit word g*rows + r.
void pack_rows(const int8_t * x, size_t x_stride, int rows, int64_t depth, char * out) {
    const int64_t by_fours = rows >= 4 ? depth / (4 * K_GROUP) * (4 * K_GROUP) : 0;
    for (int r = 0; r < rows && by_fours > 0; r += 4) {
        const int      first     = first_of_four(r, rows);
        const int8_t * four_rows = x + static_cast<size_t>(first) * x_stride;
        float *        to        = reinterpret_cast<float *>(out) + first;
        for (int64_t i = 0; i < by_fours; i += 4 * K_GROUP) {
            const four groups[4] = {load_x(four_rows + i), load_x(four_rows + x_stride + i),
                                    load_x(four_rows + 2 * x_stride + i), load_x(four_rows + 3 * x_stride + i)};
            interleave_four(groups, rows, to + i / K_GROUP * rows);
        }
    }
    for (int r = 0; r < rows; r++) {
        pack_row(x + static_cast<size_t>(r) * x_stride, rows, by_fours, depth,
                 reinterpret_cast<x_element *>(out) + r * K_GROUP);
    }
}

// Sums of unsigned x leave int32 until their starting value is added.
vi wrapping_add(vi a, vi b) {
    typedef uint32_t vu __attribute__((vector_size(sizeof(vi))));
    return vi(vu(a) + vu(b));
}

// The sums of a tile that is narrower than NR, added to their starting values or to what is there.
__attribute__((noinline)) void store_ragged(const output & out, const vi (*sums)[2], int rows) {
    for (int r = 0; r < rows; r++) {
        char * c = reinterpret_cast<char *>(row_of(out, r));
        for (int j = 0; j < out.columns; j++) {
            uint32_t before;
            memcpy(&before, (out.first ? out.start : c) + static_cast<size_t>(j) * sizeof(before), sizeof(before));
            const uint32_t now = before + static_cast<uint32_t>(sums[r][j / LANES][j % LANES]);
            memcpy(c + static_cast<size_t>(j) * sizeof(now), &now, sizeof(now));
        }
    }
}

// The compiler may not decide, for the code behind, to keep the sums in memory through the loop before.
template <int MR> void pin(vi (&sums)[MR][2]) {
#if defined(__x86_64__) && !defined(GGML_EXT_ISA_SCALAR)
#    pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        __asm__("" : "+v"(sums[r][0]), "+v"(sums[r][1]));
    }
#else
    (void) sums;
#endif
}

// What a whole tile's sums begin with: their starting values, or the sums of the blocks of K before.
template <int MR> void begin_sums(const output & out, vi (&sums)[MR][2]) {
    const int32_t * start = reinterpret_cast<const int32_t *>(out.start);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        const int32_t * before = out.first ? start : reinterpret_cast<const int32_t *>(row_of(out, r));
        sums[r][0]             = load(before);
        sums[r][1]             = load(before + LANES);
    }
}

// Not inlined, and no second loop where one step is all: else the sums leave their registers. Finished sums are scaled before they
// are written: what is written first and read again at once waits for the cache line.
template <int MR>
__attribute__((noinline)) void tile(int64_t groups, const char * x, const int8_t * w, const output & out, prefetch next) {
    constexpr int U = 2 * MR >= MIN_SUMS ? 1 : MIN_SUMS / (2 * MR); // groups with sums of their own

    alignas(sizeof(vi)) vi sums[U][MR][2] = {}; // a template, pin, knows of no smaller alignment
    if (out.columns == NR) {
        begin_sums(out, sums[0]);
    }

    fetch_to_write(out.dst, out.stride, MR, NR * int64_t{sizeof(float)});
    for (int64_t left = groups; left > 0;) {
        next.some();
        const int64_t some = min64(left, FETCH_GROUPS);
        left -= some;
        int64_t g = 0;
        for (; g + U <= some; g += U) {
#pragma GCC unroll 4
            for (int u = 0; u < U; u++) {
                const w_vector w0 = load_w(w), w1 = load_w(w + LANES * K_GROUP);
#pragma GCC unroll 16
                for (int r = 0; r < MR; r++) {
                    int32_t a;
                    memcpy(&a, x + r * 4, sizeof(a));
                    sums[u][r][0] = dot(sums[u][r][0], a, w0);
                    sums[u][r][1] = dot(sums[u][r][1], a, w1);
                }
                x += MR * 4;
                w += NR * K_GROUP;
            }
        }
        if constexpr (U > 1) {
            for (; g < some; g++, x += MR * 4, w += NR * K_GROUP) {
                const w_vector w0 = load_w(w), w1 = load_w(w + LANES * K_GROUP);
#pragma GCC unroll 16
                for (int r = 0; r < MR; r++) {
                    int32_t a;
                    memcpy(&a, x + r * 4, sizeof(a));
                    sums[0][r][0] = dot(sums[0][r][0], a, w0);
                    sums[0][r][1] = dot(sums[0][r][1], a, w1);
                }
            }
        }
    }
    if constexpr (U > 1) {
#pragma GCC unroll 4
        for (int u = 1; u < U; u++) {
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                sums[0][r][0] = wrapping_add(sums[0][r][0], sums[u][r][0]);
                sums[0][r][1] = wrapping_add(sums[0][r][1], sums[u][r][1]);
            }
        }
    }

    pin(sums[0]);
    if (out.columns == NR) {
        if (!out.last) {
#pragma GCC unroll 16
            for (int r = 0; r < MR; r++) {
                float * c = row_of(out, r);
                store(c, from_bits(sums[0][r][0]));
                store(c + LANES, from_bits(sums[0][r][1]));
            }
            return;
        }
        const vf w0 = column_scale(out, 0, LANES), w1 = column_scale(out, LANES, LANES);
        const vf b0 = column_bias(out, 0, LANES), b1 = column_bias(out, LANES, LANES);
#pragma GCC unroll 16
        for (int r = 0; r < MR; r++) {
            float *  c = row_of(out, r);
            const vf a = row_scale(out, r);
            store(c, scaled(sums[0][r][0], a, w0, b0));
            store(c + LANES, scaled(sums[0][r][1], a, w1, b1));
        }
        if (out.activation == GGML_EXT_CPU_ACT_GELU_ERF) {
            gelu_erf_tile(out.dst, out.stride, MR, NR);
        }
        return;
    }
    vi spilled[MR][2];
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        spilled[r][0] = sums[0][r][0];
        spilled[r][1] = sums[0][r][1];
    }
    store_ragged(out, spilled, MR);
    if (out.last) {
        finish(out, MR, out.dst, out.stride);
    }
}

template <int MR>
void tile_of(int rows, int64_t groups, const char * x, const int8_t * w, const output & out, const prefetch & next) {
    if (rows == MR) {
        tile<MR>(groups, x, w, out, next);
    } else if constexpr (MR > 1) {
        tile_of<MR - 1>(rows, groups, x, w, out, next);
    }
}

void run(const ggml_ext_cpu_gemm_i8_args & args, const char * panels, range rows, range panel_range, char * scratch) {
    const int64_t all_groups = groups_of(args.K);
    const int64_t kc         = depth_of_block(args.M, args.K);
    const int64_t k_blocks   = (args.K + kc - 1) / kc;
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        const int64_t block_rows = min64(MC, rows.end - m0);
        const int64_t tiles      = (block_rows + GEMM_MR - 1) / GEMM_MR;
        for (int64_t kb = 0; kb < k_blocks; kb++) {
            const range   g           = share(all_groups, kb, k_blocks);
            const int64_t groups      = g.end - g.begin;
            const int64_t k0          = g.begin * K_GROUP;
            const int64_t depth       = min64(args.K, g.end * K_GROUP) - k0;
            const int64_t fetch_times = (groups + FETCH_GROUPS - 1) / FETCH_GROUPS;
            for (int64_t t = 0; t < tiles; t++) {
                const range r = share(block_rows, t, tiles);
                pack_rows(args.x + static_cast<size_t>(m0 + r.begin) * args.x_stride + k0, args.x_stride,
                          static_cast<int>(r.end - r.begin), depth, scratch + r.begin * groups * 4);
            }
            for (int64_t p = panel_range.begin; p < panel_range.end; p++) {
                const char *   panel   = panels + static_cast<size_t>(p) * panel_bytes(args.K);
                const int8_t * w       = reinterpret_cast<const int8_t *>(panel + NR * sizeof(int32_t)) + k0 * NR;
                const bool     fetches = tiles > 1 && p + 1 < panel_range.end; // a single tile reads its panel fast enough itself
                for (int64_t t = 0; t < tiles; t++) {
                    const range r   = share(block_rows, t, tiles);
                    output      out = output_of(args, m0 + r.begin, p * NR, min64(NR, args.N - p * NR));
                    out.start       = panel;
                    out.first       = kb == 0;
                    out.last        = kb == k_blocks - 1;
                    tile_of<GEMM_MR>(static_cast<int>(r.end - r.begin), groups, scratch + r.begin * groups * 4, w, out,
                                     fetches ? prefetch_share(reinterpret_cast<const char *>(w) + panel_bytes(args.K),
                                                              groups * K_GROUP * NR, t, tiles, fetch_times)
                                             : prefetch{});
                }
            }
        }
    }
}

} // namespace

const gemm_i8_kernels GGML_EXT_KERNELS(gemm_i8) = {GEMM_MR, NR, K_GROUP, scratch_size, pack_panel, run};
