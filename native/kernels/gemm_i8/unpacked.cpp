// A few rows of x by weights as they are: a vector runs along k of a row of each, and is summed up at its end. Reading the weights is
// most of the work, so that packed ones would be no faster.

#include "kernel.h"
#include "tile_output.h"

#include <immintrin.h>

namespace {

constexpr int64_t MOST_ROWS = 2;

#if defined(GGML_EXT_ISA_AVX512)

// (w + 128) x, for the instruction wants one side unsigned.
constexpr int64_t STEP     = 64;
constexpr int     COLUMNS  = 8; // at a time
constexpr int32_t W_OFFSET = 128;

typedef __m512i vector;
typedef int8_t  x_element;

inline vector load_w(const int8_t * p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(W_OFFSET)));
}
inline vector dot(vector sum, vector w, vector x) {
    return _mm512_dpbusd_epi32(sum, w, x);
}
inline __m128i narrow(vector v) {
    const __m256i half = _mm256_add_epi32(_mm512_castsi512_si256(v), _mm512_extracti64x4_epi64(v, 1));
    return _mm_add_epi32(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
}

#else

constexpr int64_t STEP     = 16;
constexpr int     COLUMNS  = 4;
constexpr int32_t W_OFFSET = 0;

typedef __m256i vector;
typedef int16_t x_element;

inline vector load_w(const int8_t * p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
}
inline vector dot(vector sum, vector w, vector x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(w, x));
}
inline __m128i narrow(vector v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

#endif

// The sums of four vectors.
inline __m128i sums_of(vector a, vector b, vector c, vector d) {
    return _mm_hadd_epi32(_mm_hadd_epi32(narrow(a), narrow(b)), _mm_hadd_epi32(narrow(c), narrow(d)));
}

int64_t padded(int64_t k) {
    return (k + STEP - 1) / STEP * STEP;
}

// A row of x in the scratch, zeros behind it. Returns what its sums begin with.
int32_t bring(const int8_t * x, int64_t k, x_element * to) {
    int32_t total = 0;
    for (int64_t i = 0; i < k; i++) {
        to[i] = x[i];
        total += x[i];
    }
    memset(to + k, 0, static_cast<size_t>(padded(k) - k) * sizeof(x_element));
    return -W_OFFSET * total;
}

// STEP successive k of M rows of x by those of N rows of weights.
template <int M, int N>
inline __attribute__((always_inline)) void add_products(const x_element * x, int64_t x_stride, const int8_t * w, size_t w_stride, vector * sums) {
#pragma GCC                                unroll 8
    for (int n = 0; n < N; n++) {
        const vector wide = load_w(w + static_cast<size_t>(n) * w_stride);
#pragma GCC unroll 8
        for (int m = 0; m < M; m++) {
            vector row;
            memcpy(&row, x + m * x_stride, sizeof(row));
            sums[m * N + n] = dot(sums[m * N + n], wide, row);
        }
    }
}

// M rows of x by N rows of weights; sums[m*LANES + n].
template <int M, int N>
void tile(const x_element * x, int64_t x_stride, const int8_t * w, size_t w_stride, int64_t depth, const int32_t * start, int32_t * sums) {
    constexpr int VECTORS = (M * N + 3) / 4 * 4;
    vector        v[VECTORS];
#pragma GCC unroll 16
    for (int i = 0; i < VECTORS; i++) {
        v[i] = vector{};
    }
    int64_t k = 0;
    for (; k + STEP <= depth; k += STEP) {
        add_products<M, N>(x + k, x_stride, w + k, w_stride, v);
    }
    if (k < depth) {
        int8_t last[N * STEP] = {};
        for (int n = 0; n < N; n++) {
            memcpy(last + n * STEP, w + static_cast<size_t>(n) * w_stride + k, static_cast<size_t>(depth - k));
        }
        add_products<M, N>(x + k, x_stride, last, STEP, v);
    }
    alignas(16) int32_t all[VECTORS];
    for (int i = 0; i < VECTORS; i += 4) {
        _mm_store_si128(reinterpret_cast<__m128i *>(all + i), sums_of(v[i], v[i + 1], v[i + 2], v[i + 3]));
    }
    for (int m = 0; m < M; m++) {
        for (int n = 0; n < N; n++) {
            sums[m * LANES + n] = static_cast<int32_t>(static_cast<uint32_t>(all[m * N + n]) + static_cast<uint32_t>(start[m]));
        }
    }
}

template <int M> void columns(const ggml_ext_cpu_gemm_i8_args & args, range columns, x_element * x) {
    const int64_t stride = padded(args.K);
    int32_t       start[M];
    for (int m = 0; m < M; m++) {
        start[m] = bring(args.x + static_cast<size_t>(m) * args.x_stride, args.K, x + m * stride);
    }
    for (int64_t first = columns.begin; first < columns.end; first += LANES) {
        const int64_t       some = min64(LANES, columns.end - first);
        const int8_t *      w    = args.w + static_cast<size_t>(first) * args.w_stride;
        alignas(64) int32_t sums[M * LANES];
        int64_t             n = 0;
        for (; n + COLUMNS <= some; n += COLUMNS) {
            tile<M, COLUMNS>(x, stride, w + static_cast<size_t>(n) * args.w_stride, args.w_stride, args.K, start, sums + n);
        }
        for (; n < some; n++) {
            tile<M, 1>(x, stride, w + static_cast<size_t>(n) * args.w_stride, args.w_stride, args.K, start, sums + n);
        }
        finish(output_of(args, 0, first, some), M, sums, LANES * sizeof(int32_t));
    }
}

template <int M> void rows(const ggml_ext_cpu_gemm_i8_args & args, range of, x_element * x) {
    if (args.M == M) {
        columns<M>(args, of, x);
    } else if constexpr (M > 1) {
        rows<M - 1>(args, of, x);
    }
}

void run(const ggml_ext_cpu_gemm_i8_args & args, range of, char * scratch) {
    rows<MOST_ROWS>(args, of, reinterpret_cast<x_element *>(scratch));
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(M * padded(K)) * sizeof(x_element);
}

} // namespace

const unpacked_i8_kernels GGML_EXT_KERNELS(unpacked_i8) = {MOST_ROWS, scratch_size, run};
