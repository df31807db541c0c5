#include "kernel.h"
#include "rotate.h"

namespace {

int32_t row_magnitude(const float * x, int64_t k) {
    vi      a = {}, b = {};
    int64_t i = 0;
    for (; i + 2 * LANES <= k; i += 2 * LANES) {
        a = max(a, magnitude(load(x + i)));
        b = max(b, magnitude(load(x + i + LANES)));
    }
    for (; i < k; i += LANES) {
        a = max(a, magnitude(load_n(x + i, static_cast<int>(min64(LANES, k - i)))));
    }
    return max_lane(max(a, b));
}

vi to_i8_range(vf v) {
    return round_even(max(set1(-127.0f), min(set1(127.0f), v)));
}

void quantize_row(const float * y, int64_t k, float inverse, int8_t * q) {
    int64_t i = 0;
    for (; i + 4 * LANES <= k; i += 4 * LANES) {
        const float * p = y + i;
        store_i8(q + i, to_i8_range(load(p) * inverse), to_i8_range(load(p + LANES) * inverse),
                 to_i8_range(load(p + 2 * LANES) * inverse), to_i8_range(load(p + 3 * LANES) * inverse));
    }
    for (; i < k; i += LANES) {
        const int n = static_cast<int>(min64(LANES, k - i));
        const vi  v = to_i8_range(load_n(y + i, n) * inverse);
        for (int j = 0; j < n; j++) {
            q[i + j] = static_cast<int8_t>(v[j]);
        }
    }
}

// For scales whose reciprocal is no finite float.
void quantize_tiny_row(const float * y, int64_t k, float scale, int8_t * q) {
    for (int64_t i = 0; i < k; i++) {
        const double v = __builtin_rint(static_cast<double>(y[i]) / static_cast<double>(scale));
        q[i]           = static_cast<int8_t>(v > 127 ? 127 : v < -127 ? -127
                                                                      : v);
    }
}

void rows(const ggml_ext_cpu_quantize_i8_args & args, range rows, float * scratch) {
    const size_t k = static_cast<size_t>(args.K);
    for (int64_t m = rows.begin; m < rows.end; m++) {
        int8_t * q = args.q + static_cast<size_t>(m) * args.q_stride;
        if (m >= args.M) {
            memset(q, 0, k);
            continue;
        }
        const float * y = reinterpret_cast<const float *>(reinterpret_cast<const char *>(args.x) +
                                                          static_cast<size_t>(m) * args.x_stride);
        int32_t       most;
        if (args.group == 1) {
            most = row_magnitude(y, args.K);
        } else {
            most = rotate_row(y, scratch, args.K, args.group);
            y    = scratch;
        }

        float largest;
        memcpy(&largest, &most, sizeof(largest));
        const bool  finite  = most < 0x7F800000;
        const float scale   = finite ? largest / 127.0f : __builtin_nanf("");
        const float inverse = 1.0f / scale;
        int32_t     inverse_bits; // compared as an integer: GCC 13 takes the reciprocal for finite
        memcpy(&inverse_bits, &inverse, sizeof(inverse));
        if (!finite || scale == 0.0f) {
            memset(q, 0, k);
        } else if (inverse_bits == 0x7F800000) {
            quantize_tiny_row(y, args.K, scale, q);
        } else {
            quantize_row(y, args.K, inverse, q);
        }
        memcpy(args.scale + m, &scale, sizeof(scale));
    }
}

} // namespace

const quantize_i8_kernels GGML_EXT_KERNELS(quantize_i8) = {rows};
