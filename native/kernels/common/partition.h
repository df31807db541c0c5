#pragma once

// Static shares of work for (ith, nth).

#include <stdint.h>

namespace ggml_ext_cpu {

struct range {
    int64_t begin, end;
};

struct tile2d {
    range m, n;
};

} // namespace ggml_ext_cpu

using ggml_ext_cpu::range;
using ggml_ext_cpu::tile2d;

namespace {

// Share ith of nth of [0, n), sizes differing by at most one.
inline range share(int64_t n, int64_t ith, int64_t nth) {
    return {n * ith / nth, n * (ith + 1) / nth};
}

// The rows in share ith of nth of the panels of N rows, nr each; none where there is no such share.
inline range share_panels(int64_t N, int nr, int ith, int nth) {
    if (N < 1 || ith < 0 || ith >= nth) {
        return {0, 0};
    }
    const range   panels = share((N + nr - 1) / nr, ith, nth);
    const int64_t end    = panels.end * nr;
    return {panels.begin * nr, end < N ? end : N};
}

// pack(first, rows) of each of the panels in that share.
template <typename F> void each_panel(int64_t N, int nr, int ith, int nth, F && pack) {
    const range mine = share_panels(N, nr, ith, nth);
    for (int64_t n = mine.begin; n < mine.end; n += nr) {
        pack(n, N - n < nr ? N - n : nr);
    }
}

// Cuts an m_units x n_units grid into nth rectangles: the one with the least work in its largest rectangle wins, then the one
// that reads fewest rows and columns (m_weight, n_weight: bytes to read for one unit). A unit of the grid is a tile's product. To
// read a unit of columns, weights that come from memory, takes as long as LEAST_ROWS tiles; to pack a unit of rows, which each
// rectangle does for itself, as one.
inline tile2d share_grid(int64_t m_units, int64_t n_units, int64_t m_weight, int64_t n_weight, int ith, int nth) {
    constexpr int64_t LEAST_ROWS = 3;

    int        best_m    = 1;
    int64_t    best_work = INT64_MAX, best_read = INT64_MAX;
    const auto consider = [&](int tm) {
        const int64_t rows = (m_units + tm - 1) / tm;
        const int64_t cols = (n_units + nth / tm - 1) / (nth / tm);
        const int64_t work = (rows < LEAST_ROWS ? LEAST_ROWS : rows) * cols + rows;
        const int64_t read = rows * m_weight + cols * n_weight;
        if (work < best_work || (work == best_work && read < best_read)) {
            best_m    = tm;
            best_work = work;
            best_read = read;
        }
    };
    int64_t divisor = 1; // in pairs, the first of which grow, and the second ones then shrink
    for (; divisor * divisor <= nth; divisor++) {
        if (nth % divisor == 0) {
            consider(static_cast<int>(divisor));
        }
    }
    while (--divisor > 0) {
        if (nth % divisor == 0) {
            consider(static_cast<int>(nth / divisor));
        }
    }
    const int tn = nth / best_m;
    return {share(m_units, ith / tn, best_m), share(n_units, ith % tn, tn)};
}

// What share ith of nth of a product of M rows and N columns computes: rows, and panels of nr columns.
inline tile2d share_product(int64_t M, int64_t N, int mr, int nr, int ith, int nth) {
    tile2d        mine = share_grid((M + mr - 1) / mr, (N + nr - 1) / nr, mr, nr, ith, nth);
    const int64_t end  = mine.m.end * mr;
    mine.m             = {mine.m.begin * mr, end < M ? end : M};
    return mine;
}

} // namespace
