// A few rows of x by weights as they are: a vector runs along k of a row of each, and is summed up at its end. Reading the weights is
// most of the work, so that packed ones would be no faster.

#include "kernel.h"
#include "tile_output.h"

#include <immintrin.h>

namespace {

constexpr int64_t MOST_ROWS = 2;

constexpr int64_t STEP    = 16; // k in a vector
constexpr int     COLUMNS = 4;  // at a time

inline __m256i load_widened(const int8_t * p) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i *>(p)));
}

inline __m128i narrow(__m256i v) {
    return _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
}

// The sums of four vectors.
inline __m128i sums_of(__m256i a, __m256i b, __m256i c, __m256i d) {
    return _mm_hadd_epi32(_mm_hadd_epi32(narrow(a), narrow(b)), _mm_hadd_epi32(narrow(c), narrow(d)));
}

int64_t padded(int64_t k) {
    return (k + STEP - 1) / STEP * STEP;
}

// A row of x in the scratch, widened, zeros behind it.
void bring(const int8_t * x, int64_t k, int16_t * to) {
    for (int64_t i = 0; i < k; i++) {
        to[i] = x[i];
    }
    memset(to + k, 0, static_cast<size_t>(padded(k) - k) * sizeof(*to));
}

// STEP successive k of M rows of x by those of N rows of weights.
template <int M, int N>
inline __attribute__((always_inline)) void add_products(const int16_t * x, int64_t x_stride, const int8_t * w, size_t w_stride, __m256i * sums) {
#pragma GCC                                unroll 8
    for (int n = 0; n < N; n++) {
        const __m256i wide = load_widened(w + static_cast<size_t>(n) * w_stride);
#pragma GCC unroll 8
        for (int m = 0; m < M; m++) {
            const __m256i row = _mm256_loadu_si256(reinterpret_cast<const __m256i *>(x + m * x_stride));
            sums[m * N + n]   = _mm256_add_epi32(sums[m * N + n], _mm256_madd_epi16(wide, row));
        }
    }
}

// M rows of x by N rows of weights; sums[m*LANES + n].
template <int M, int N> void tile(const int16_t * x, int64_t x_stride, const int8_t * w, size_t w_stride, int64_t depth, int32_t * sums) {
    constexpr int VECTORS = (M * N + 3) / 4 * 4;
    __m256i       v[VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < VECTORS; i++) {
        v[i] = _mm256_setzero_si256();
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
        memcpy(sums + m * LANES, all + m * N, N * sizeof(*sums));
    }
}

template <int M> void columns(const ggml_ext_cpu_gemm_i8_args & args, range columns, int16_t * x) {
    const int64_t stride = padded(args.K);
    for (int m = 0; m < M; m++) {
        bring(args.x + static_cast<size_t>(m) * args.x_stride, args.K, x + m * stride);
    }
    for (int64_t first = columns.begin; first < columns.end; first += LANES) {
        const int64_t       some = min64(LANES, columns.end - first);
        const int8_t *      w    = args.w + static_cast<size_t>(first) * args.w_stride;
        alignas(32) int32_t sums[M * LANES];
        int64_t             n = 0;
        for (; n + COLUMNS <= some; n += COLUMNS) {
            tile<M, COLUMNS>(x, stride, w + static_cast<size_t>(n) * args.w_stride, args.w_stride, args.K, sums + n);
        }
        for (; n < some; n++) {
            tile<M, 1>(x, stride, w + static_cast<size_t>(n) * args.w_stride, args.w_stride, args.K, sums + n);
        }
        finish(output_of(args, 0, first, some), M, sums, LANES * sizeof(int32_t));
    }
}

template <int M> void rows(const ggml_ext_cpu_gemm_i8_args & args, range of, int16_t * x) {
    if (args.M == M) {
        columns<M>(args, of, x);
    } else if constexpr (M > 1) {
        rows<M - 1>(args, of, x);
    }
}

void run(const ggml_ext_cpu_gemm_i8_args & args, range of, char * scratch) {
    rows<MOST_ROWS>(args, of, reinterpret_cast<int16_t *>(scratch));
}

size_t scratch_size(int64_t M, int64_t K) {
    return static_cast<size_t>(M * padded(K)) * sizeof(int16_t);
}

} // namespace

const unpacked_i8_kernels unpacked_i8_avx2 = {MOST_ROWS, scratch_size, run};
