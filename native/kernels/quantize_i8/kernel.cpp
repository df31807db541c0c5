#include "kernel.h"
#include "rotate.h"

namespace {

vi row_magnitude(const float * x, int64_t k) {
    vi      a = {}, b = {};
    int64_t i = 0;
    for (; i + 2 * LANES <= k; i += 2 * LANES) {
        a = max(a, magnitude(load(x + i)));
        b = max(b, magnitude(load(x + i + LANES)));
    }
    for (; i < k; i += LANES) {
        a = max(a, magnitude(load_n(x + i, static_cast<int>(min64(LANES, k - i)))));
    }
    return max(a, b);
}

// The integers need no clamp: |v| <= 127 * scale * (1 + 2^-21) where the reciprocal of the scale is finite, so that
// |v * inverse| < 127.5. They are the low bits of the sum with 1.5 * 2^23, half to even.
vi to_i8(vf v, float inverse) {
    return bits(fma(v, set1(inverse), from_bits(set1(0x4B400000)))) - 0x4B400000;
}

void quantize_row(const float * y, int64_t k, float inverse, int8_t * q) {
    int64_t i = 0;
    for (; i + 4 * LANES <= k; i += 4 * LANES) {
        const float * p = y + i;
        store_i8(q + i, to_i8(load(p), inverse), to_i8(load(p + LANES), inverse), to_i8(load(p + 2 * LANES), inverse),
                 to_i8(load(p + 3 * LANES), inverse));
    }
    for (; i < k; i += LANES) {
        const int n = static_cast<int>(min64(LANES, k - i));
        const vi  v = to_i8(load_n(y + i, n), inverse);
        for (int j = 0; j < n; j++) {
            q[i + j] = static_cast<int8_t>(v[j]);
        }
    }
}

template <int GROUP> vi quantize_tile(const float * y, float inverse) {
    vi column[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        column[c] = bits(fma(load(y + c * LANES), set1(-inverse), from_bits(set1(COLUMN))));
    }
    return columns_i8<(GROUP > 4)>(column[0], column[1], column[2], column[3]);
}

template <int GROUP> void quantize_tiles(const float * y, int64_t k, float inverse, int8_t * q) {
    int64_t i = 0;
    for (; i + TILE <= k; i += TILE) {
        const vi v = quantize_tile<GROUP>(y + i, inverse);
        memcpy(q + i, &v, sizeof(v));
    }
    if (i < k) {
        const vi v = quantize_tile<GROUP>(y + i, inverse);
        memcpy(q + i, &v, static_cast<size_t>(k - i));
    }
}

// For scales whose reciprocal is no finite float.
int8_t tiny_to_i8(float y, float scale) {
    const double v = __builtin_rint(static_cast<double>(y) / static_cast<double>(scale));
    return static_cast<int8_t>(v > 127 ? 127 : v < -127 ? -127
                                                        : v);
}

template <int GROUP> void quantize_tiny_tiles(const float * y, int64_t k, float scale, int8_t * q) {
    for (int64_t i = 0; i < k; i += TILE) {
        vi column[4];
        for (int j = 0; j < TILE; j++) {
            column[j / LANES][j % LANES] = COLUMN + tiny_to_i8(y[i + j], scale);
        }
        const vi v = columns_i8<(GROUP > 4)>(column[0], column[1], column[2], column[3]);
        memcpy(q + i, &v, static_cast<size_t>(min64(TILE, k - i)));
    }
}

float scale_of(vi magnitudes) {
    const int32_t most = max_lane(magnitudes & 0x7FFFFFFF);
    float         largest;
    memcpy(&largest, &most, sizeof(largest));
    return most < 0x7F800000 ? largest / 127.0f : __builtin_nanf("");
}

template <int GROUP> void quantize_special_row(const float * y, int64_t k, float scale, int8_t * q) {
    if (!(scale > 0)) {
        memset(q, 0, static_cast<size_t>(k));
    } else if (GROUP > 1) {
        quantize_tiny_tiles<GROUP>(y, k, scale, q);
    } else {
        for (int64_t i = 0; i < k; i++) {
            q[i] = tiny_to_i8(y[i], scale);
        }
    }
}

// Whether a row is quantised tile by tile while the next one is rotated, or as a whole after that. With AVX-512, groups of 4 take so few
// operations that the streams of memory in between decide, which mixed ones slow down.
template <int GROUP> constexpr bool MIXED = LANES < 16 || GROUP > 4;

// The magnitudes of x, rotated to y. The row before it, if any, is quantised to q meanwhile. Its scale came late out of its last
// floats, and is waited for while tiles of x are rotated.
template <int GROUP>
__attribute__((noinline)) vi next_row(const float * x, float * y, const float * last, float inverse, int8_t * q, int64_t k) {
    if (GROUP == 1) {
        const vi magnitudes = row_magnitude(x, k);
        if (last) {
            quantize_row(last, k, inverse, q);
        }
        return magnitudes;
    }
    if (!last || !MIXED<GROUP>) {
        const vi magnitudes = rotate_row<GROUP>(x, y, k, [](int64_t) {});
        if (last) {
            quantize_tiles<GROUP>(last, k, inverse, q);
        }
        return magnitudes;
    }
    const vi magnitudes = rotate_row<GROUP>(x, y, k, [=](int64_t i) {
        const vi v = quantize_tile<GROUP>(last + i, inverse);
        memcpy(q + i, &v, sizeof(v));
    });
    if (const int64_t whole = k / TILE * TILE; whole < k) {
        const vi v = quantize_tile<GROUP>(last + whole, inverse);
        memcpy(q + whole, &v, static_cast<size_t>(k - whole));
    }
    return magnitudes;
}

template <int GROUP> void rows(const ggml_ext_cpu_quantize_i8_args & args, range rows, float * scratch) {
    const float * last    = nullptr; // a row that is not quantised yet
    int8_t *      last_q  = nullptr;
    float         inverse = 0;
    for (int64_t m = rows.begin; m < rows.end; m++) {
        const float * x          = reinterpret_cast<const float *>(reinterpret_cast<const char *>(args.x) + static_cast<size_t>(m) * args.x_stride);
        float *       y          = GROUP == 1 ? nullptr : scratch + m % 2 * scratch_row(args.K);
        const vi      magnitudes = next_row<GROUP>(x, y, last, inverse, last_q, args.K);
        const float   scale      = scale_of(magnitudes);
        int32_t       inverse_bits; // compared as an integer: GCC 13 takes the reciprocal for finite
        last    = GROUP == 1 ? x : y;
        last_q  = args.q + static_cast<size_t>(m) * args.q_stride;
        inverse = 1.0f / scale;
        memcpy(&inverse_bits, &inverse, sizeof(inverse_bits));
        memcpy(args.scale + m, &scale, sizeof(scale));
        if (!(scale > 0) || inverse_bits == 0x7F800000) {
            quantize_special_row<GROUP>(last, args.K, scale, last_q);
            last = nullptr;
        }
    }
    if (!last) {
        return;
    }
    if (GROUP == 1) {
        quantize_row(last, args.K, inverse, last_q);
    } else {
        quantize_tiles<GROUP>(last, args.K, inverse, last_q);
    }
}

void all_rows(const ggml_ext_cpu_quantize_i8_args & args, range part, float * scratch) {
    const range data = {part.begin, min64(part.end, args.M)};
    (args.group == 1    ? rows<1>
     : args.group == 4  ? rows<4>
     : args.group == 16 ? rows<16>
     : args.group == 64 ? rows<64>
                        : rows<256>) (args, data, scratch);
    for (int64_t m = part.begin > args.M ? part.begin : args.M; m < part.end; m++) {
        memset(args.q + static_cast<size_t>(m) * args.q_stride, 0, static_cast<size_t>(args.K));
    }
}

} // namespace

const quantize_i8_kernels GGML_EXT_KERNELS(quantize_i8) = {all_rows};
