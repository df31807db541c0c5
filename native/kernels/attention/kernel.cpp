// Attention over one head's queries, compiled once for each instruction set.
//
// Of each block of KEYS keys, k is packed as panels that a register tile's vectors run over, and v as panels of its columns.
// A tile of queries then multiplies twice: scores = q k^T, and, once they are exponentials, sums += scores v.

#include "kernel.h"
#include "half.h"
#include "row_vectors.h"
#include "vmath.h"

namespace {

constexpr int     NR   = 2 * LANES;
constexpr int     MR   = LANES == 16 ? 8 : GEMM_MR;
constexpr int64_t KEYS = 64; // a multiple of every NR

int64_t padded(int64_t n) {
    return (n + NR - 1) / NR * NR;
}

// What a thread's scratch holds.
struct memory {
    float *k, *v, *scores, *sums, *most, *total;

    memory(float * scratch, int64_t d_k, int64_t d_v) {
        k      = scratch;
        v      = k + KEYS * d_k;
        scores = v + KEYS * padded(d_v);
        sums   = scores + MR * KEYS;
        most   = sums + ATTENTION_QUERIES * padded(d_v);
        total  = most + ATTENTION_QUERIES;
    }
};

size_t scratch_size(int64_t d_k, int64_t d_v) {
    const int64_t floats = KEYS * (d_k + padded(d_v)) + MR * KEYS + ATTENTION_QUERIES * (padded(d_v) + 2);
    return static_cast<size_t>(floats) * sizeof(float);
}

// R rows of a, of successive elements, times b [depth][NR], to R rows of c: added to what is there times keep[r], or instead of it.
// Not inlined: else the sums leave their registers.
template <int R>
__attribute__((noinline)) void
multiply(int64_t depth, const float * a, int64_t a_row, const float * b, float * c, int64_t c_row, const float * keep) {
    vf s[R][2];
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
        s[r][0] = keep == nullptr ? vf{} : load(c + r * c_row) * keep[r];
        s[r][1] = keep == nullptr ? vf{} : load(c + r * c_row + LANES) * keep[r];
    }
    for (int64_t i = 0; i < depth; i++) {
        const vf b0 = load(b), b1 = load(b + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < R; r++) {
            const vf x = set1(a[r * a_row]);
            add_product(s[r][0], x, b0);
            add_product(s[r][1], x, b1);
        }
        a++;
        b += NR;
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; r++) {
        store(c + r * c_row, s[r][0]);
        store(c + r * c_row + LANES, s[r][1]);
    }
}

// A row of scores times values [depth][NR], added to keep times c. What has no weight is not multiplied: it may be a NaN.
void add_weighted(int64_t depth, const float * scores, const float * values, float * c, float keep) {
    vf s0 = load(c) * keep, s1 = load(c + LANES) * keep;
    for (int64_t i = 0; i < depth; i++, values += NR) {
        if (scores[i] != 0) {
            const vf x = set1(scores[i]);
            add_product(s0, x, load(values));
            add_product(s1, x, load(values + LANES));
        }
    }
    store(c, s0);
    store(c + LANES, s1);
}

inline vf take_row(const char * row, int64_t i, int n, bool half) {
    return half ? take(reinterpret_cast<const uint16_t *>(row) + i, n) : take(reinterpret_cast<const float *>(row) + i, n);
}

// out[panel][d][NR]; keys beyond the last are zeros.
void pack_keys(const char * k, size_t stride, int64_t keys, int64_t d_k, bool half, float * out) {
    for (int64_t j0 = 0; j0 < padded(keys); j0 += LANES) {
        float * to = out + j0 / NR * NR * d_k + j0 % NR;
        for (int64_t d = 0; d < d_k; d += LANES) {
            const int n = static_cast<int>(min64(LANES, d_k - d));
            vf        x[LANES];
            for (int64_t j = 0; j < LANES; j++) {
                x[j] = j0 + j < keys ? take_row(k + static_cast<size_t>(j0 + j) * stride, d, n, half) : vf{};
            }
            transpose(x);
            for (int i = 0; i < n; i++) {
                store(to + (d + i) * NR, x[i]);
            }
        }
    }
}

// out[panel of columns][key][NR]; columns beyond the last are zeros. Returns whether all values are finite.
bool pack_values(const char * v, size_t stride, int64_t keys, int64_t d_v, bool half, float * out) {
    vf zeros = {};
    for (int64_t p = 0; p < d_v; p += NR) {
        for (int64_t j = 0; j < keys; j++, out += NR) {
            const char * row = v + static_cast<size_t>(j) * stride;
            for (int64_t d = p; d < p + NR; d += LANES) {
                const int64_t n = min64(LANES, d_v - d);
                const vf      x = n > 0 ? take_row(row, d, static_cast<int>(n), half) : vf{};
                zeros += x * 0.0f;
                store(out + d - p, x);
            }
        }
    }
    return sum(zeros) == 0;
}

struct block {
    int64_t      keys;
    const char * mask; // of the tile's first query and the block's first key, or null
    size_t       mask_stride;
    float        slope;
    bool         finite; // its values
};

const uint16_t * mask_row(const block & b, int r) {
    return reinterpret_cast<const uint16_t *>(b.mask + static_cast<size_t>(r) * b.mask_stride);
}

bool all_masked(const block & b, int rows) {
    if (b.mask == nullptr) {
        return false;
    }
    for (int r = 0; r < rows; r++) {
        const uint16_t * m = mask_row(b, r);
        for (int64_t j = 0; j < b.keys; j++) {
            if (m[j] != HALF_MINUS_INFINITY) {
                return false;
            }
        }
    }
    return true;
}

// A row of scores to exponentials: the factor for the row's sums so far is returned.
float exponentials(const block & b, int r, float scale, float * scores, float & most, float & total) {
    const float minus_infinity = -__builtin_inff();
    vf          largest        = set1(most);
    for (int64_t j = 0; j < b.keys; j += LANES) {
        const int n = static_cast<int>(min64(LANES, b.keys - j));
        vf        s = load(scores + j) * scale;
        if (b.mask != nullptr) {
            const vf m = take(mask_row(b, r) + j, n);
            s          = m == minus_infinity ? m : fma(m, set1(b.slope), s);
        }
        for (int i = n; i < LANES; i++) {
            s[i] = minus_infinity;
        }
        store(scores + j, s);
        largest = max(s, largest); // a NaN in s is passed over here and shows in its exponential
    }
    const float now   = max_lane(largest);
    const float shift = now == minus_infinity ? 0.0f : now;
    vf          sums  = {};
    for (int64_t j = 0; j < b.keys; j += LANES) {
        const vf e = exp_not_positive(load(scores + j) - shift, vf{});
        store(scores + j, e);
        sums += e;
    }
    const vf    before = exp_not_positive(set1(most - shift), vf{});
    const float factor = most == minus_infinity ? 0.0f : before[0];
    most               = now;
    total              = total * factor + sum(sums);
    return factor;
}

template <int R> void tile(const ggml_ext_cpu_attention_args & args, const block & b, const float * q, int64_t first, const memory & m) {
    for (int64_t j = 0; j < b.keys; j += NR) {
        multiply<R>(args.d_k, q, static_cast<int64_t>(args.q_stride.row / sizeof(float)), m.k + j * args.d_k, m.scores + j, KEYS, nullptr);
    }
    float factors[R];
    for (int r = 0; r < R; r++) {
        factors[r] = exponentials(b, r, args.scale, m.scores + r * KEYS, m.most[first + r], m.total[first + r]);
    }
    const int64_t width = padded(args.d_v);
    for (int64_t d = 0; d < args.d_v; d += NR) {
        if (b.finite) {
            multiply<R>(b.keys, m.scores, KEYS, m.v + d * b.keys, m.sums + first * width + d, width, factors);
            continue;
        }
        for (int r = 0; r < R; r++) {
            add_weighted(b.keys, m.scores + r * KEYS, m.v + d * b.keys, m.sums + (first + r) * width + d, factors[r]);
        }
    }
}

template <int R>
void tile_of(
    int64_t rows, const ggml_ext_cpu_attention_args & args, const block & b, const float * q, int64_t first, const memory & m) {
    if (rows == R) {
        tile<R>(args, b, q, first, m);
    } else if constexpr (R > 1) {
        tile_of<R - 1>(rows, args, b, q, first, m);
    }
}

// `all`: the keys, with the mask of the first row. A row of which none counts is 0; where scores of -inf count, 0/0.
void write(const ggml_ext_cpu_attention_args & args, const memory & m, int64_t rows, block all, char * dst) {
    const int64_t width = padded(args.d_v);
    for (int64_t r = 0; r < rows; r++) {
        float *     to     = reinterpret_cast<float *>(dst + static_cast<size_t>(r) * args.dst_stride.row);
        const float factor = m.total[r] == 0 && all_masked(all, 1) ? 0.0f : 1.0f / m.total[r];
        all.mask += all.mask != nullptr ? all.mask_stride : 0;
        each_vector(args.d_v, [&](int64_t d, int n) { put(to + d, load(m.sums + r * width + d) * factor, n); });
    }
}

void run(const ggml_ext_cpu_attention_args & args, const attention_part & part, float * scratch) {
    const memory  m(scratch, args.d_k, args.d_v);
    const int64_t rows     = part.queries.end - part.queries.begin;
    const int64_t tiles    = (rows + MR - 1) / MR;
    const auto    first    = static_cast<size_t>(part.queries.begin);
    const auto    head     = static_cast<size_t>(part.head);
    const auto    batch    = static_cast<size_t>(part.batch);
    const size_t  kv_head  = head / static_cast<size_t>(args.heads / args.kv_heads);
    const size_t  kv_batch = batch / static_cast<size_t>(args.batches / args.kv_batches);
    const bool    half     = args.kv_type == GGML_EXT_CPU_ATTENTION_F16;

    const auto place = [](const void * base, const ggml_ext_cpu_attention_strides & s, size_t r, size_t h, size_t b) {
        return static_cast<const char *>(base) + r * s.row + h * s.head + b * s.batch;
    };
    const char * mask = args.mask == nullptr ? nullptr
                                             : place(args.mask, args.mask_stride, first, head % static_cast<size_t>(args.mask_heads),
                                                     batch % static_cast<size_t>(args.mask_batches));

    const char * q = place(args.q, args.q_stride, first, head, batch);
    memset(m.sums, 0, static_cast<size_t>(rows * padded(args.d_v)) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        m.most[r]  = -__builtin_inff();
        m.total[r] = 0;
    }
    for (int64_t k0 = 0; k0 < args.keys; k0 += KEYS) {
        const int64_t keys   = min64(KEYS, args.keys - k0);
        bool          packed = false, finite = true;
        for (int64_t t = 0; t < tiles; t++) {
            const range tile = share(rows, t, tiles);
            block       b    = {keys, nullptr, args.mask_stride.row, part.slope, true};
            if (mask != nullptr) {
                b.mask = mask + static_cast<size_t>(tile.begin) * args.mask_stride.row + static_cast<size_t>(k0) * sizeof(uint16_t);
            }
            if (all_masked(b, static_cast<int>(tile.end - tile.begin))) {
                continue;
            }
            if (!packed) {
                packed = true;
                pack_keys(place(args.k, args.k_stride, static_cast<size_t>(k0), kv_head, kv_batch), args.k_stride.row, keys,
                          args.d_k, half, m.k);
                finite = pack_values(place(args.v, args.v_stride, static_cast<size_t>(k0), kv_head, kv_batch), args.v_stride.row, keys,
                                     args.d_v, half, m.v);
            }
            b.finite = finite;
            tile_of<MR>(tile.end - tile.begin, args, b,
                        reinterpret_cast<const float *>(q + static_cast<size_t>(tile.begin) * args.q_stride.row), tile.begin, m);
        }
    }
    write(args, m, rows, {args.keys, mask, args.mask_stride.row, part.slope, true}, const_cast<char *>(place(args.dst, args.dst_stride, first, head, batch)));
}

} // namespace

const attention_kernels GGML_EXT_KERNELS(attention) = {scratch_size, run};
