// The blocked INT8 product where no instruction multiplies bytes exactly: both sides are widened to int16. Blocking as in gemm_f32; sums of
// earlier blocks of K wait, as int32, where the float results will be.

#include "kernel.h"
#include "dot.h"
#include "pack_w.h"
#include "prefetch.h"
#include "tile_sums.h"

namespace {

constexpr int64_t MC           = 144;
constexpr int     MIN_SUMS     = 6;
constexpr int     FETCH_GROUPS = 4; // between two lines of the next panel

// K is cut for x and a panel to stay in their caches while all tiles use them.
int64_t depth_of_block(int64_t M, int64_t K) {
    return min64(K, BLOCK_BYTES / (min64(MC, M) * int64_t{sizeof(pair_groups::element)} + NR));
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(min64(MC, M) * groups_of<K_GROUP>(depth_of_block(M, K))) * K_GROUP * sizeof(pair_groups::element);
}

void pack_panel(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    memset(panel, 0, grouped_bytes<K_GROUP>(k));
    pack_groups<K_GROUP, 0>(w, w_stride, columns, k, panel);
}

// The products of one group of MR rows and two vectors of columns.
template <int MR> inline __attribute__((always_inline)) void add_products(const char * x, const int8_t * w, vi (&sums)[MR][2]) {
    const w_vector w0 = load_w(w), w1 = load_w(w + LANES * K_GROUP);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        int32_t a;
        memcpy(&a, x + r * 4, sizeof(a));
        sums[r][0] = dot(sums[r][0], a, w0);
        sums[r][1] = dot(sums[r][1], a, w1);
    }
}

// Not inlined, and no second loop where one step is all: else the sums leave their registers.
template <int MR> __attribute__((noinline)) void tile(const factors & f, const output & out) {
    constexpr int U = 2 * MR >= MIN_SUMS ? 1 : MIN_SUMS / (2 * MR); // groups with sums of their own

    alignas(sizeof(vi)) vi sums[U][MR][2] = {}; // a template, begin_sums, knows of no smaller alignment
    begin_sums(out, sums[0]);

    fetch_to_write(out.dst, out.stride, MR, NR * int64_t{sizeof(float)});
    const char *   x    = f.x;
    const int8_t * w    = f.w;
    const char *   next = f.next;
    int64_t        g    = 0;
    for (; g + FETCH_GROUPS <= f.groups; g += FETCH_GROUPS, next += FETCH_GROUPS * f.next_step) {
        __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 4
        for (int i = 0; i < FETCH_GROUPS; i++, x += MR * 4, w += NR * K_GROUP) {
            add_products(x, w, sums[i % U]);
        }
    }
    for (; g < f.groups; g++, x += MR * 4, w += NR * K_GROUP) {
        add_products(x, w, sums[0]);
    }
    join_sums(sums);
    end_sums(out, sums[0]);
}

template <int MR> void tile_of(int rows, const factors & f, const output & out) {
    if (rows == MR) {
        tile<MR>(f, out);
    } else if constexpr (MR > 1) {
        tile_of<MR - 1>(rows, f, out);
    }
}

void run(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch) {
    const int64_t all_groups = groups_of<K_GROUP>(args.K);
    const int64_t kc         = depth_of_block(args.M, args.K);
    const int64_t k_blocks   = (args.K + kc - 1) / kc;
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        const int64_t block_rows = min64(MC, rows.end - m0);
        const int64_t tiles      = (block_rows + GEMM_MR - 1) / GEMM_MR;
        for (int64_t kb = 0; kb < k_blocks; kb++) {
            const range   g      = share(all_groups, kb, k_blocks);
            const int64_t groups = g.end - g.begin;
            const int64_t k0     = g.begin * K_GROUP;
            const int64_t depth  = min64(args.K, g.end * K_GROUP) - k0;
            for (int64_t t = 0; t < tiles; t++) {
                const range r = share(block_rows, t, tiles);
                const int   n = static_cast<int>(r.end - r.begin);
                pack_rows<pair_groups>(args.x + static_cast<size_t>(m0 + r.begin) * args.x_stride + k0, args.x_stride, n, n, depth,
                                       scratch + r.begin * groups * 4);
            }
            for (int64_t p = panel_range.begin; p < panel_range.end; p++) {
                const int8_t * w       = reinterpret_cast<const int8_t *>(panels.at(p)) + k0 * NR;
                const bool     fetches = tiles > 1 && p + 1 < panel_range.end; // a single tile reads its panel fast enough itself
                factors        f;
                f.w         = w;
                f.groups    = groups;
                f.next      = reinterpret_cast<const char *>(w) + (fetches ? panels.stride : 0);
                f.next_step = fetches ? (NR * K_GROUP + tiles - 1) / tiles : 0;
                for (int64_t t = 0; t < tiles; t++) {
                    const range r = share(block_rows, t, tiles);
                    f.x           = scratch + r.begin * groups * 4;
                    output out    = output_of(args, m0 + r.begin, p * NR, min64(NR, args.N - p * NR));
                    out.first     = kb == 0;
                    out.start     = NOTHING;
                    out.last      = kb == k_blocks - 1;
                    tile_of<GEMM_MR>(static_cast<int>(r.end - r.begin), f, out);
                    f.next += f.next_step * groups;
                }
            }
        }
    }
}

} // namespace

const gemm_i8_kernels GGML_EXT_KERNELS(gemm_i8) = {GEMM_MR, NR, grouped_bytes<K_GROUP>, scratch_size, pack_panel, run};
