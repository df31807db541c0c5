#include "kernel.h"
#include "row_norm.h"
#include "vmath.h"

namespace {

const float * at(const float * base, size_t stride, int64_t row) {
    return reinterpret_cast<const float *>(reinterpret_cast<const char *>(base) + static_cast<size_t>(row) * stride);
}

float * at(float * base, size_t stride, int64_t row) {
    return reinterpret_cast<float *>(reinterpret_cast<char *>(base) + static_cast<size_t>(row) * stride);
}

void layer_norm(const ggml_ext_cpu_layer_norm_args & args, range rows) {
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const float * x        = at(args.x, args.x_stride, r);
        const float * residual = args.residual ? at(args.residual, args.residual_stride, r) : nullptr;
        float *       dst      = at(args.dst, args.dst_stride, r);

        const float * y     = x;
        vf            total = {};
        if (residual) {
            each_vector(args.n, [&](int64_t i, int n) {
                const vf v = take(x + i, n) + take(residual + i, n);
                put(dst + i, v, n);
                total += v;
            });
            y = dst;
        } else {
            each_vector(args.n, [&](int64_t i, int n) { total += take(x + i, n); });
        }
        const vf mean   = mean_from(total, args.n);
        const vf factor = norm_factor(y, args.n, mean, args.eps);
        each_vector(args.n, [&](int64_t i, int n) {
            vf v = (take(y + i, n) - mean) * factor;
            if (args.weight) {
                v = v * take(args.weight + i, n);
            }
            if (args.bias) {
                v = v + take(args.bias + i, n);
            }
            put(dst + i, v, n);
        });
    }
}

void softmax(const ggml_ext_cpu_softmax_args & args, range rows) {
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const float * x    = at(args.x, args.x_stride, r);
        const float * mask = args.mask ? at(args.mask, args.mask_stride, r % args.mask_rows) : nullptr;
        float *       dst  = at(args.dst, args.dst_stride, r);

        vf most = set1(-__builtin_inff());
        each_vector(args.n, [&](int64_t i, int n) {
            vf v = take(x + i, n) * args.scale;
            if (mask) {
                v = v + take(mask + i, n);
            }
            put(dst + i, v, n);
            if (n < LANES) { // lanes beyond the row repeat its last value
                for (int j = n; j < LANES; j++) {
                    v[j] = v[n - 1];
                }
            }
            most = max(v, most); // a NaN in v is passed over here and shows in its exponential
        });
        const vf largest = set1(max_lane(most));
        vf       total   = {};
        each_vector(args.n, [&](int64_t i, int n) {
            const vf v = only(exp_not_positive(take(dst + i, n) - largest, vf{}), n);
            put(dst + i, v, n);
            total += v;
        });
        const vf factor = set1(1.0f / sum(total));
        each_vector(args.n, [&](int64_t i, int n) { put(dst + i, take(dst + i, n) * factor, n); });
    }
}

void gelu(const float * x, float * dst, int64_t size) {
    each_vector(size, [&](int64_t i, int n) { put(dst + i, gelu_erf(take(x + i, n)), n); });
}

} // namespace

const rows_kernels GGML_EXT_KERNELS(rows) = {layer_norm, softmax, gelu};
