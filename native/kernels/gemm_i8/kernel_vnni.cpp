// The INT8 product of AVX-512 VNNI, whose instruction multiplies unsigned by signed bytes and can broadcast the signed ones from memory:
// weights are packed as w + 128, x is read where it lies, and each sum starts at -128 times the sum of its row of x, which makes it
// exact again (all modulo 2^32). Blocking as in gemm_f32; sums of earlier blocks of K wait, as int32, where the float results will be.

#include "each_tile.h"
#include "kernel.h"
#include "pack_w.h"
#include "prefetch.h"
#include "tile_sums.h"

namespace {

constexpr int     K_GROUP      = 4;
constexpr int32_t OFFSET       = 128;
constexpr int64_t MC           = 144;
constexpr int     MIN_SUMS     = 6; // independent chains that hide the latency of a multiplication
constexpr int     FETCH_GROUPS = 4; // between two lines of the next panel

// A group of x: four successive k of one row.
typedef int32_t group __attribute__((aligned(1), may_alias));

// K is cut for x and a panel to stay in their caches while all tiles use them.
int64_t groups_of_block(int64_t M, int64_t K) {
    return min64(groups_of<K_GROUP>(K), BLOCK_BYTES / (min64(MC, M) + NR) / K_GROUP);
}

// Where the rows' sums start.
size_t scratch_size(int64_t M, int64_t /* K */) {
    return static_cast<size_t>(min64(MC, M)) * sizeof(int32_t);
}

// Bytes of 0 past the last k of a column, and past the last column: x has zeros there, and nobody reads the sums.
void pack_panel(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    memset(panel, 0, grouped_bytes<K_GROUP>(k));
    pack_groups<K_GROUP, OFFSET>(w, w_stride, columns, k, panel);
}

// -OFFSET times the sum of k bytes.
int32_t start_of_row(const int8_t * x, int64_t k) {
    __m512i sums = _mm512_setzero_si512();
    for (int64_t i = 0; i < k; i += 64) {
        const __mmask64 valid = k - i >= 64 ? ~__mmask64{0} : (__mmask64{1} << (k - i)) - 1;
        sums                  = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), _mm512_maskz_loadu_epi8(valid, x + i));
    }
    return -OFFSET * _mm512_reduce_add_epi32(sums);
}

inline vi load_w(const int8_t * p) {
    return vi(_mm512_loadu_si512(p));
}

inline void add_products(vi & sum, vi w, vi x) {
    sum = vi(_mm512_dpbusd_epi32(__m512i(sum), __m512i(w), __m512i(x)));
}

// The instruction broadcasts x itself. GCC loads it once where it is used twice.
inline void add_products(vi & sum, vi w, const group & x) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(x));
}

// The rows of a tile, from three to three: an address is one of these and up to two strides.
template <int MR> struct tile_rows {
    const int8_t * third[(MR + 2) / 3];
    size_t         stride;

    tile_rows(const int8_t * x, size_t x_stride) : stride(x_stride) {
        for (int i = 0; i < (MR + 2) / 3; i++) {
            third[i] = x + static_cast<size_t>(3 * i) * x_stride;
        }
    }

    const int8_t * at(int r) const { return third[r / 3] + static_cast<size_t>(r % 3) * stride; }

    void advance(int64_t bytes) {
#pragma GCC unroll 8
        for (int i = 0; i < (MR + 2) / 3; i++) {
            third[i] += bytes;
        }
    }
};

// The products of one group of MR rows, `offset` bytes from where they are, and two vectors of columns.
template <int MR>
inline __attribute__((always_inline)) void add_group(const tile_rows<MR> & x, int offset, const int8_t * w, vi (&sums)[MR][2]) {
    const vi w0 = load_w(w), w1 = load_w(w + LANES * K_GROUP);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        const group & a = *reinterpret_cast<const group *>(x.at(r) + offset);
        if (MR >= 8 && r % 3 == 0) { // as in gemm_f32, for the rows whose addresses take no index
            add_products(sums[r][0], w0, a);
            add_products(sums[r][1], w1, a);
        } else {
            const vi all = set1(int32_t{a});
            add_products(sums[r][0], w0, all);
            add_products(sums[r][1], w1, all);
        }
    }
}

// The last group of a row, of which there are `bytes`, 1 to 3.
template <int MR> inline __attribute__((always_inline)) void add_last(const tile_rows<MR> & x, size_t bytes, const int8_t * w, vi (&sums)[MR][2]) {
    const vi w0 = load_w(w), w1 = load_w(w + LANES * K_GROUP);
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        int32_t a = 0;
        memcpy(&a, x.at(r), bytes);
        add_products(sums[r][0], w0, set1(a));
        add_products(sums[r][1], w1, set1(a));
    }
}

// Not inlined, and no second loop where one step is all: else the sums leave their registers.
template <int MR> __attribute__((noinline)) void tile(const factors & f, size_t x_stride, size_t last_bytes, const output & out) {
    constexpr int U = 2 * MR >= MIN_SUMS ? 1 : MIN_SUMS / (2 * MR); // groups with sums of their own

    alignas(sizeof(vi)) vi sums[U][MR][2] = {};
#pragma GCC unroll 16
    for (int r = 0; r < MR; r++) {
        sums[0][r][0] = sums[0][r][1] = set1(out.start[r]); // one for the row
    }
    if (!out.first && out.columns == NR) {
        add_stored(out, sums[0]);
    }

    fetch_to_write(out.dst, out.stride, MR, NR * int64_t{sizeof(float)});
    tile_rows<MR>  x(reinterpret_cast<const int8_t *>(f.x), x_stride);
    const int8_t * w    = f.w;
    const char *   next = f.next;
    int64_t        g    = 0;
    for (; g + FETCH_GROUPS <= f.groups; g += FETCH_GROUPS, next += FETCH_GROUPS * f.next_step) {
        __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 4
        for (int i = 0; i < FETCH_GROUPS; i++, w += NR * K_GROUP) {
            add_group(x, i * K_GROUP, w, sums[i % U]);
        }
        x.advance(FETCH_GROUPS * K_GROUP);
    }
    for (; g < f.groups; g++, x.advance(K_GROUP), w += NR * K_GROUP) {
        add_group(x, 0, w, sums[0]);
    }
    if (last_bytes > 0) {
        add_last(x, last_bytes, w, sums[0]);
    }
    join_sums(sums);
    end_sums(out, sums[0]);
}

template <int MR> void tile_of(int rows, const factors & f, size_t x_stride, size_t last_bytes, const output & out) {
    if (rows == MR) {
        tile<MR>(f, x_stride, last_bytes, out);
    } else if constexpr (MR > 1) {
        tile_of<MR - 1>(rows, f, x_stride, last_bytes, out);
    }
}

// Up to MC rows of x, and a block of K: whole groups, and the last bytes of the rows where they end with no whole one.
struct block {
    const ggml_ext_cpu_gemm_i8_args & args;
    int64_t                           m0, rows;
    const int32_t *                   starts;
    range                             groups;
    size_t                            last_bytes;
    bool                              first, last;

    int64_t tiles() const { return (rows + GEMM_MR - 1) / GEMM_MR; }

    // One tile of rows by one panel, while a share of the next one comes into L2.
    void multiply(int64_t t, const char * panel, int64_t p, const char * next) const {
        const range r = share(rows, t, tiles());
        factors     f;
        f.x         = reinterpret_cast<const char *>(args.x + static_cast<size_t>(m0 + r.begin) * args.x_stride + groups.begin * K_GROUP);
        f.w         = reinterpret_cast<const int8_t *>(panel) + groups.begin * NR * K_GROUP;
        f.groups    = groups.end - groups.begin;
        f.next_step = next ? (NR * K_GROUP + tiles() - 1) / tiles() : 0;
        f.next      = next ? next + groups.begin * NR * K_GROUP + t * f.next_step * f.groups : panel;

        output out = output_of(args, m0 + r.begin, p * NR, min64(NR, args.N - p * NR));
        out.first  = first;
        out.start  = first ? starts + r.begin : NOTHING;
        out.last   = last;
        tile_of<GEMM_MR>(static_cast<int>(r.end - r.begin), f, args.x_stride, last_bytes, out);
    }

    void multiply(packed_panels panels, range panel_range) const {
        const int64_t weight_bytes = (panel_range.end - panel_range.begin) * (groups.end - groups.begin) * NR * K_GROUP;
        each_tile(weight_bytes, tiles(), panel_range, [&](int64_t t, int64_t p) {
            const bool fetches = weight_bytes > STAY_BYTES && tiles() > 1 && p + 1 < panel_range.end; // a single tile reads its panel fast enough itself
            multiply(t, panels.at(p), p, fetches ? panels.at(p + 1) : nullptr);
        });
    }
};

void run(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch) {
    const int64_t all_groups = groups_of<K_GROUP>(args.K), most = groups_of_block(args.M, args.K);
    const int64_t k_blocks = (all_groups + most - 1) / most;
    auto * const  starts   = reinterpret_cast<int32_t *>(scratch);
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += MC) {
        block b = {args, m0, min64(MC, rows.end - m0), starts, {}, 0, false, false};
        for (int64_t r = 0; r < b.rows; r++) {
            starts[r] = start_of_row(args.x + static_cast<size_t>(m0 + r) * args.x_stride, args.K);
        }
        for (int64_t kb = 0; kb < k_blocks; kb++) {
            b.groups     = share(all_groups, kb, k_blocks);
            b.first      = kb == 0;
            b.last       = kb == k_blocks - 1;
            b.last_bytes = b.last ? static_cast<size_t>(args.K % K_GROUP) : 0;
            b.groups.end -= b.last_bytes > 0 ? 1 : 0;
            b.multiply(panels, panel_range);
        }
    }
}

} // namespace

const gemm_i8_kernels GGML_EXT_KERNELS(gemm_i8) = {GEMM_MR, NR, grouped_bytes<K_GROUP>, scratch_size, pack_panel, run};
