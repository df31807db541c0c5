// The INT8 product on AMX tiles: one of x is up to 16 rows of 64 k, one of w 16 groups of 4 k of 16 columns, and one instruction
// adds the products of 64 k to 16 x 16 sums, signed by signed, exact modulo 2^32. A packed panel is 32 columns in groups of 4 k,
// padded with zeros to whole tiles.

#include "arguments.h"
#include "each_tile.h"
#include "kernel.h"
#include "pack_w.h"
#include "tile_output.h"

namespace {

constexpr int     ROWS     = 16; // of a tile
constexpr int     K_GROUP  = 4;
constexpr int64_t K_TILE   = 64;
constexpr int64_t L1_BYTES = 32 << 10; // of x, beside a panel
constexpr int     W_STRIDE = NR * K_GROUP;
constexpr size_t  NEAR     = 2048; // bytes from row to row of x: further ones share too few sets of L1

// Tiles 0 to 3 are the sums of two by two tiles, 4 and 5 two of x, 6 and 7 two of w. The instructions want their numbers as literals.
struct alignas(64) tile_config {
    uint8_t  palette = 1, start_row = 0, reserved[14] = {};
    uint16_t column_bytes[16] = {};
    uint8_t  rows[16]         = {};
};

// GCC's tile intrinsics do not say what memory they read: what is written before must be there.
inline void finish_writes() {
    __asm__ volatile("" ::: "memory");
}

void configure(int rows) {
    const int   first = rows < ROWS ? rows : ROWS, second = rows - first;
    const int   of_tile[8] = {first, first, second, second, first, second, ROWS, ROWS};
    tile_config config;
    for (int i = 0; i < 8; i++) {
        config.rows[i]         = static_cast<uint8_t>(of_tile[i]);
        config.column_bytes[i] = of_tile[i] > 0 ? 64 : 0;
    }
    finish_writes();
    _tile_loadconfig(&config);
}

int64_t tiles_of(int64_t k) {
    return (k + K_TILE - 1) / K_TILE;
}

size_t panel_bytes(int64_t k) {
    return NR * static_cast<size_t>(tiles_of(k) * K_TILE);
}

void pack_panel(const int8_t * w, size_t w_stride, int64_t columns, int64_t k, char * panel) {
    memset(panel, 0, panel_bytes(k));
    pack_groups<K_GROUP, 0>(w, w_stride, columns, k, panel);
}

// Rows of x in a block: 64 where they fit into L1 beside a panel, else 128, so that panels are read less often.
int64_t rows_of_block(int64_t k) {
    return 64 * k <= L1_BYTES ? 64 : 128;
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(min64(rows_of_block(K), M) * tiles_of(K) * K_TILE);
}

// rows rows of x, at most a tile's, as the tiles that they make: 64 bytes of each row, then the next 64 of each.
void pack_rows(const char * x, size_t x_stride, int rows, int64_t depth, char * out) {
    for (int r = 0; r < rows; r++, x += x_stride) {
        char *  to = out + r * K_TILE;
        int64_t i  = 0;
        for (; i + K_TILE <= depth; i += K_TILE, to += rows * K_TILE) {
            memcpy(to, x + i, K_TILE);
        }
        if (i < depth) {
            memset(to, 0, K_TILE);
            memcpy(to, x + i, static_cast<size_t>(depth - i));
        }
    }
}

// Whether the rows of x are tiles as they lie: whole ones, in whole cache lines.
bool lies_in_tiles(const ggml_ext_cpu_gemm_i8_args & args) {
    return args.K % K_TILE == 0 && (bytes_of(args.x) | args.x_stride) % K_TILE == 0 && args.x_stride <= NEAR;
}

// Two tiles of x, the second one perhaps of no rows.
struct x_tiles {
    const char * at[2];
    size_t       step[2]; // bytes to the next 64 of k
    size_t       stride;  // bytes from row to row
};

x_tiles tiles_in_rows(const char * x, size_t x_stride, size_t rows0) {
    return {{x, x + rows0 * x_stride}, {K_TILE, K_TILE}, x_stride};
}

x_tiles packed_tiles(const char * x, int64_t k_tiles, size_t rows0, size_t rows1) {
    return {{x, x + rows0 * static_cast<size_t>(k_tiles * K_TILE)}, {rows0 * K_TILE, rows1 * K_TILE}, K_TILE};
}

// A pair of tiles of sums by two tiles of columns, row by row.
struct alignas(64) sums_of_pair {
    vi of[2][ROWS][2];
};

// One or two tiles of rows by two of columns: all of K.
template <bool TWO>
void multiply(int64_t k_tiles, x_tiles x, const int8_t * w, sums_of_pair & sums) {
    finish_writes();
    _tile_zero(0);
    _tile_zero(1);
    if constexpr (TWO) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t t = 0; t < k_tiles; t++) {
        _tile_loadd(6, w, W_STRIDE);
        _tile_loadd(4, x.at[0], x.stride);
        _tile_dpbssd(0, 4, 6);
        _tile_loadd(7, w + 64, W_STRIDE);
        _tile_dpbssd(1, 4, 7);
        if constexpr (TWO) {
            _tile_loadd(5, x.at[1], x.stride);
            _tile_dpbssd(2, 5, 6);
            _tile_dpbssd(3, 5, 7);
            x.at[1] += x.step[1];
        }
        x.at[0] += x.step[0];
        w += ROWS * W_STRIDE;
    }
    constexpr size_t STRIDE = sizeof(sums.of[0][0]);
    _tile_stored(0, &sums.of[0][0][0], STRIDE);
    _tile_stored(1, &sums.of[0][0][1], STRIDE);
    if constexpr (TWO) {
        _tile_stored(2, &sums.of[1][0][0], STRIDE);
        _tile_stored(3, &sums.of[1][0][1], STRIDE);
    }
}

void finish_pair(const output & out, int rows, const sums_of_pair & sums) {
    if (out.columns < NR || rows % ROWS != 0) {
        finish(out, rows, sums.of, sizeof(sums.of[0][0]));
        return;
    }
    for (int i = 0; i < rows / ROWS; i++) {
        finish_whole(rows_from(out, i * ROWS), sums.of[i]);
    }
}

void run(const ggml_ext_cpu_gemm_i8_args & args, packed_panels panels, range rows, range panel_range, char * scratch) {
    constexpr int64_t PAIR    = 2 * ROWS;
    const bool        lies    = lies_in_tiles(args);
    const int64_t     k_tiles = tiles_of(args.K), block = rows_of_block(args.K);
    int               configured = 0;
    sums_of_pair      sums;
    for (int64_t m0 = rows.begin; m0 < rows.end; m0 += block) {
        const int64_t block_rows = min64(block, rows.end - m0);
        const char *  block_x    = reinterpret_cast<const char *>(args.x) + static_cast<size_t>(m0) * args.x_stride;
        for (int64_t r = 0; r < block_rows && !lies; r += ROWS) {
            pack_rows(block_x + static_cast<size_t>(r) * args.x_stride, args.x_stride, static_cast<int>(min64(ROWS, block_rows - r)), args.K,
                      scratch + r * k_tiles * K_TILE);
        }
        // pairs of whole tiles, then what is left; another number of rows is another configuration
        const int64_t pairs = block_rows / PAIR, rest = block_rows % PAIR;
        const int64_t weight_bytes = (panel_range.end - panel_range.begin) * k_tiles * K_TILE * NR;
        each_tile(weight_bytes, pairs + (rest > 0 ? 1 : 0), panel_range, [&](int64_t t, int64_t p) {
            const int64_t r         = t * PAIR;
            const int     tile_rows = static_cast<int>(t < pairs ? PAIR : rest);
            const size_t  rows0 = static_cast<size_t>(min64(ROWS, tile_rows)), rows1 = static_cast<size_t>(tile_rows) - rows0;
            if (tile_rows != configured) {
                configure(tile_rows);
                configured = tile_rows;
            }
            const int8_t * w = reinterpret_cast<const int8_t *>(panels.at(p));
            const x_tiles  x = lies ? tiles_in_rows(block_x + static_cast<size_t>(r) * args.x_stride, args.x_stride, rows0)
                                    : packed_tiles(scratch + r * k_tiles * K_TILE, k_tiles, rows0, rows1);
            if (rows1 > 0) {
                multiply<true>(k_tiles, x, w, sums);
            } else {
                multiply<false>(k_tiles, x, w, sums);
            }
            finish_pair(output_of(args, m0 + r, p * NR, min64(NR, args.N - p * NR)), tile_rows, sums);
        });
    }
    _tile_release();
}

} // namespace

const gemm_i8_kernels GGML_EXT_KERNELS(gemm_i8) = {ROWS, NR, panel_bytes, scratch_size, pack_panel, run};
