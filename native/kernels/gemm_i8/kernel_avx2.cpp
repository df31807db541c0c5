// The INT8 product of AVX2 in bytes, exact with the instruction that saturates: packed weights are safe from it (safe_weights.h), and
// the rests of the few that were not are multiplied by themselves, for 32 rows at a time. Three instructions multiply 32 pairs where the
// widened product of kernel.cpp takes four. Panels of which too much would be left, no likely weights, are multiplied by that one.

#include "kernel.h"
#include "pack_w.h"
#include "pack_x.h"
#include "prefetch.h"
#include "rests.h"
#include "safe_weights.h"
#include "tile_sums.h"

namespace {

constexpr int     K_GROUP = byte_groups::SIZE;
constexpr int     GROUP   = NR * K_GROUP; // bytes of a panel
constexpr int     SEGMENT = 1024;         // of K, whose rests are together; blocks of K are whole segments
constexpr int     MR      = 4;
constexpr int64_t MC      = 128;

// A panel: this, K bytes of NR columns, in groups, the number of runs of rests before each segment, and of all, the runs.
struct alignas(64) panel_head {
    int32_t start[NR]; // -128 times the sum of a column
    int32_t widened;   // 1: what follows is a panel of gemm_i8_avx2
};

int64_t segments_of(int64_t k) {
    return (k + SEGMENT - 1) / SEGMENT;
}

// Where the parts of a panel lie.
struct panel_layout {
    int64_t most_runs;
    size_t  before, runs, size;

    explicit panel_layout(int64_t k) {
        most_runs = k * NR / 128 + 2 * NR;
        before    = sizeof(panel_head) + static_cast<size_t>(groups_of<K_GROUP>(k)) * GROUP;
        runs      = before + static_cast<size_t>(segments_of(k) + 1) * sizeof(int32_t);
        size      = (runs + static_cast<size_t>(most_runs) * sizeof(rest_run) + alignof(panel_head) - 1) / alignof(panel_head) * alignof(panel_head);
    }
};

size_t panel_bytes(int64_t k) {
    return panel_layout(k).size;
}

// Blocks of K, as in kernel.cpp.
int64_t blocks_of(int64_t M, int64_t K) {
    const int64_t segments = BLOCK_BYTES / SEGMENT / (min64(MC, M) + NR);
    return (segments_of(K) + segments - 1) / segments;
}

// A thread's scratch: beginnings, x for the tiles, x for the rests.
struct scratch_layout {
    size_t x, columns, size;

    scratch_layout(int64_t M, int64_t K) {
        const int64_t rows = min64(MC, M), blocks = blocks_of(M, K);
        const int64_t depth = min64((segments_of(K) + blocks - 1) / blocks * SEGMENT, groups_of<K_GROUP>(K) * K_GROUP);
        x                   = sizeof(beginnings);
        columns             = x + static_cast<size_t>((rows * depth + 63) / 64 * 64);
        size                = columns + static_cast<size_t>((rows + UNIT - 1) / UNIT * UNIT * depth);
    }
};

size_t scratch_size(int64_t M, int64_t K) {
    const size_t own = 64 + scratch_layout(M, K).size, widened = gemm_i8_avx2.scratch_size(M, K);
    return own > widened ? own : widened;
}

bool pack_safe(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    const panel_layout place(k);
    panel_head         head   = {};
    rest_writer        rests  = {reinterpret_cast<rest_run *>(panel + place.runs), place.most_runs};
    int32_t * const    before = reinterpret_cast<int32_t *>(panel + place.before);
    memset(panel, 0, place.runs);
    for (int64_t s = 0; s < segments_of(k); s++) {
        const int64_t first = s * SEGMENT;
        int8_t *      out   = reinterpret_cast<int8_t *>(panel + sizeof(panel_head)) + first * NR;
        for (int j = 0; j < columns; j++) {
            rests.begin_column(j);
            head.start[j] -= byte_groups::OFFSET * pack_safe_column(w + static_cast<size_t>(j) * w_stride + first, static_cast<int>(min64(SEGMENT, k - first)),
                                                                    out + j * K_GROUP, GROUP, rests);
        }
        if (rests.full) {
            return false;
        }
        before[s + 1] = static_cast<int32_t>(rests.n);
    }
    memcpy(panel, &head, sizeof(head));
    return true;
}

void pack_panel(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    if (!pack_safe(w, w_stride, columns, k, panel)) {
        panel_head head = {};
        head.widened    = 1;
        memcpy(panel, &head, sizeof(head));
        gemm_i8_avx2.pack_panel(w, w_stride, columns, k, panel + sizeof(head));
    }
}

__m256i broadcast(const char * x) {
    int32_t group;
    memcpy(&group, x, sizeof(group));
    return _mm256_set1_epi32(group);
}

template <int R> __attribute__((noinline)) void tile(const factors & f, const output & out) {
    alignas(sizeof(vi)) vi sums[R][2];
    begin_sums(out, sums);
    fetch_to_write(out.dst, out.stride, R, NR * int64_t{sizeof(float)});

    const __m256i  one  = _mm256_set1_epi16(1);
    const char *   x    = f.x;
    const int8_t * w    = f.w;
    const char *   next = f.next;
#pragma GCC unroll 2
    for (int64_t g = 0; g < f.groups; g++) {
        const __m256i w0 = load_bytes(w), w1 = load_bytes(w + 32);
        __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 4
        for (int r = 0; r < R; r++) {
            const __m256i a = broadcast(x + r * K_GROUP);
            sums[r][0]      = vi(_mm256_add_epi32(__m256i(sums[r][0]), _mm256_madd_epi16(_mm256_maddubs_epi16(a, w0), one)));
            sums[r][1]      = vi(_mm256_add_epi32(__m256i(sums[r][1]), _mm256_madd_epi16(_mm256_maddubs_epi16(a, w1), one)));
        }
        x += R * K_GROUP;
        w += GROUP;
        next += f.next_step;
    }
    end_sums(out, sums);
}

template <int R> void tile_of(int rows, const factors & f, const output & out) {
    if (rows == R) {
        tile<R>(f, out);
    } else if constexpr (R > 1) {
        tile_of<R - 1>(rows, f, out);
    }
}

// Up to MC rows of x, packed, and a block of K.
struct block {
    const ggml_ext_cpu_gemm_i8_args & args;
    int64_t                           m0, rows, units;
    range                             segments, groups;
    bool                              first, last;
    const char *                      x;
    const char *                      columns;

    int64_t depth() const { return (groups.end - groups.begin) * K_GROUP; }
    range   rows_of(int64_t unit) const { return share(rows, unit, units); }
};

// A unit's products with a panel's rests, added to its starting values, by rows.
void begin_unit(const block & b, const int32_t * start, const int32_t * before, const rest_run * runs, int64_t unit, beginnings & begin) {
    const range   rows   = b.rows_of(unit);
    const int64_t eights = (rows.end - rows.begin + LANES - 1) / LANES;
    for (int64_t i = 0; i < eights; i++) {
        for (int j = 0; j < NR; j++) {
            store(begin.by_column[i][j], set1(start[j]));
        }
    }
    for (int64_t s = b.segments.begin; s < b.segments.end; s++) {
        const rest_run *const from = runs + before[s], *const to = runs + before[s + 1];
        const char * const x = b.columns + unit * UNIT * b.depth() + (s - b.segments.begin) * SEGMENT * UNIT;
        eights == 1   ? add_rests<1>(from, to, x, begin)
        : eights == 2 ? add_rests<2>(from, to, x, begin)
                      : add_rests<4>(from, to, x, begin);
    }
    for (int64_t i = 0; i < eights; i++) {
        transpose(&begin.by_column[i][0], &begin.by_row[i * LANES], 0);
        transpose(&begin.by_column[i][LANES], &begin.by_row[i * LANES], LANES);
    }
}

void multiply(const block & b, packed_panels panels, int64_t p, bool more, beginnings & begin) {
    const panel_layout place(b.args.K);
    const char *       panel  = panels.at(p);
    const int32_t *    start  = b.first ? reinterpret_cast<const int32_t *>(panel) : NOTHING;
    const int32_t *    before = reinterpret_cast<const int32_t *>(panel + place.before);
    const bool         rests  = before[b.segments.begin] < before[b.segments.end];

    factors f;
    f.x         = b.x;
    f.w         = reinterpret_cast<const int8_t *>(panel + sizeof(panel_head)) + b.groups.begin * GROUP;
    f.groups    = b.groups.end - b.groups.begin;
    f.next      = reinterpret_cast<const char *>(f.w) + (more ? panels.stride : 0);
    f.next_step = more && b.rows > MR ? (GROUP * MR + b.rows - 1) / b.rows : 0;
    output out  = output_of(b.args, b.m0, p * NR, min64(NR, b.args.N - p * NR));
    out.first   = b.first;
    out.last    = b.last;
    for (int64_t u = 0; u < b.units; u++) {
        if (rests) {
            begin_unit(b, start, before, reinterpret_cast<const rest_run *>(panel + place.runs), u, begin);
        }
        const range   unit  = b.rows_of(u);
        const int64_t rows  = unit.end - unit.begin;
        const int64_t tiles = (rows + MR - 1) / MR;
        for (int64_t t = 0; t < tiles; t++) {
            const range r    = share(rows, t, tiles);
            output      part = rows_from(out, unit.begin + r.begin);
            part.start       = rests ? begin.by_row[r.begin] : start;
            part.start_step  = rests ? NR : 0;
            tile_of<MR>(static_cast<int>(r.end - r.begin), f, part);
            f.x += (r.end - r.begin) * b.depth();
            f.next += f.next_step * f.groups;
        }
    }
}

void run_safe(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch) {
    scratch += (64 - reinterpret_cast<uintptr_t>(scratch) % 64) % 64;
    const scratch_layout place(args.M, args.K);
    auto &               begin   = *reinterpret_cast<beginnings *>(scratch);
    char * const         x       = scratch + place.x;
    char * const         columns = scratch + place.columns;
    const int64_t        blocks  = blocks_of(args.M, args.K);
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        const int64_t n = min64(MC, rows.end - m0);
        block         b = {args, m0, n, (n + UNIT - 1) / UNIT, {}, {}, false, false, x, columns};
        for (int64_t kb = 0; kb < blocks; kb++) {
            b.segments          = share(segments_of(args.K), kb, blocks);
            const int64_t k0    = b.segments.begin * SEGMENT;
            const int64_t depth = min64(args.K, b.segments.end * SEGMENT) - k0;
            b.groups            = {k0 / K_GROUP, k0 / K_GROUP + groups_of<K_GROUP>(depth)};
            b.first             = kb == 0;
            b.last              = kb == blocks - 1;
            char * to           = x;
            for (int64_t u = 0; u < b.units; u++) {
                const range    unit  = b.rows_of(u);
                const int64_t  tiles = (unit.end - unit.begin + MR - 1) / MR;
                const int8_t * from  = args.x + static_cast<size_t>(m0 + unit.begin) * args.x_stride + k0;
                for (int64_t t = 0; t < tiles; t++) {
                    const range r     = share(unit.end - unit.begin, t, tiles);
                    const int   width = static_cast<int>(r.end - r.begin);
                    pack_rows<byte_groups>(from + static_cast<size_t>(r.begin) * args.x_stride, args.x_stride, width, width, depth, to);
                    to += width * b.depth();
                }
                for (int64_t r = 0; r < unit.end - unit.begin; r += LANES) {
                    pack_columns(from + static_cast<size_t>(r) * args.x_stride, args.x_stride, unit.end - unit.begin - r, depth, columns + u * UNIT * b.depth() + r);
                }
            }
            for (int64_t p = panel_range.begin; p < panel_range.end; p++) {
                multiply(b, panels, p, p + 1 < panel_range.end, begin);
            }
        }
    }
}

bool is_widened(const char * panel) {
    panel_head head;
    memcpy(&head, panel, sizeof(head));
    return head.widened != 0;
}

// Runs of panels of the same kind.
void run(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch) {
    for (range same = {panel_range.begin, 0}; same.begin < panel_range.end; same.begin = same.end) {
        const bool widened = is_widened(panels.at(same.begin));
        for (same.end = same.begin + 1; same.end < panel_range.end && is_widened(panels.at(same.end)) == widened;) {
            same.end++;
        }
        if (widened) {
            gemm_i8_avx2.run(args, {panels.data + sizeof(panel_head), panels.stride}, rows, same, scratch);
        } else {
            run_safe(args, panels, rows, same, scratch);
        }
    }
}

} // namespace

const gemm_i8_kernels gemm_i8_avx2_bytes = {MR, NR, panel_bytes, scratch_size, pack_panel, run};
