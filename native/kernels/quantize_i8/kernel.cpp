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
constexpr int32_t INTEGER = 0x4B400000;

vi integers(vf v, float inverse, int offset) {
    return bits(fma(v, set1(inverse), from_bits(set1(INTEGER + offset))));
}

void quantize_row(const float * y, int64_t k, float inverse, int8_t * q) {
    const auto to_i8 = [inverse](vf v) { return integers(v, inverse, 0) - INTEGER; };
    int64_t    i     = 0;
    for (; i + 4 * LANES <= k; i += 4 * LANES) {
        const float * p = y + i;
        store_i8(q + i, to_i8(load(p)), to_i8(load(p + LANES)), to_i8(load(p + 2 * LANES)), to_i8(load(p + 3 * LANES)));
    }
    for (; i < k; i += LANES) {
        const int n = static_cast<int>(min64(LANES, k - i));
        const vi  v = to_i8(load_n(y + i, n));
        for (int j = 0; j < n; j++) {
            q[i + j] = static_cast<int8_t>(v[j]);
        }
    }
}

// A tile's four columns are the bytes of 32-bit lanes.
vi quantize_tile(const float * y, float inverse) {
    vi column[4];
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) { // plus 128, so that each lies within its byte; taken back in the last step
        column[c] = integers(load(y + c * LANES), inverse, 128) << 8 * c;
    }
    return (column[0] ^ column[1]) ^ (column[2] ^ column[3]) ^ static_cast<int32_t>(0x80808080u ^ INTEGER ^ 0x40000000u);
}

void quantize_tiles(const float * y, int64_t k, float inverse, int8_t * q) {
    int64_t i = 0;
    for (; i + TILE <= k; i += TILE) {
        const vi v = quantize_tile(y + i, inverse);
        memcpy(q + i, &v, sizeof(v));
    }
    if (i < k) {
        const vi v = quantize_tile(y + i, inverse);
        memcpy(q + i, &v, static_cast<size_t>(k - i));
    }
}

// For scales whose reciprocal is no finite float.
void quantize_tiny_row(const float * y, int64_t k, float scale, bool tiles, int8_t * q) {
    for (int64_t i = 0; i < k; i++) {
        const double v = __builtin_rint(static_cast<double>(y[tiles ? place(i) : i]) / static_cast<double>(scale));
        q[i]           = static_cast<int8_t>(v > 127 ? 127 : v < -127 ? -127
                                                                      : v);
    }
}

float scale_of(vi magnitudes) {
    const int32_t most = max_lane(magnitudes);
    float         largest;
    memcpy(&largest, &most, sizeof(largest));
    return most < 0x7F800000 ? largest / 127.0f : __builtin_nanf("");
}

void quantize(const float * y, float scale, const ggml_ext_cpu_quantize_i8_args & args, int64_t m) {
    int8_t *    q       = args.q + static_cast<size_t>(m) * args.q_stride;
    const float inverse = 1.0f / scale;
    int32_t     inverse_bits; // compared as an integer: GCC 13 takes the reciprocal for finite
    memcpy(&inverse_bits, &inverse, sizeof(inverse_bits));
    if (!(scale > 0)) {
        memset(q, 0, static_cast<size_t>(args.K));
    } else if (inverse_bits == 0x7F800000) {
        quantize_tiny_row(y, args.K, scale, args.group > 1, q);
    } else if (args.group == 1) {
        quantize_row(y, args.K, inverse, q);
    } else {
        quantize_tiles(y, args.K, inverse, q);
    }
    memcpy(args.scale + m, &scale, sizeof(scale));
}

// The scale of a row takes long to come out of its last floats, and is waited for while the next row is rotated.
void rows(const ggml_ext_cpu_quantize_i8_args & args, range rows, float * scratch) {
    const int64_t end = min64(rows.end, args.M), size = (args.K + TILE - 1) / TILE * TILE;
    const float * last       = nullptr;
    vi            magnitudes = {};
    for (int64_t m = rows.begin; m < end; m++) {
        const float   scale = scale_of(magnitudes);
        const float * y     = reinterpret_cast<const float *>(reinterpret_cast<const char *>(args.x) + static_cast<size_t>(m) * args.x_stride);
        if (args.group == 1) {
            magnitudes = row_magnitude(y, args.K);
        } else {
            float * to = scratch + m % 2 * size;
            magnitudes = rotate_row(y, to, args.K, args.group);
            y          = to;
        }
        if (last) {
            quantize(last, scale, args, m - 1);
        }
        last = y;
    }
    if (last) {
        quantize(last, scale_of(magnitudes), args, end - 1);
    }
    for (int64_t m = rows.begin > args.M ? rows.begin : args.M; m < rows.end; m++) {
        memset(args.q + static_cast<size_t>(m) * args.q_stride, 0, static_cast<size_t>(args.K));
    }
}

} // namespace

const quantize_i8_kernels GGML_EXT_KERNELS(quantize_i8) = {rows};
