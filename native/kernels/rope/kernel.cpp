#include "kernel.h"
#include "row_vectors.h"

namespace {

// x / sqrt(mean(x^2) + eps) * weight
void rms_norm(const ggml_ext_cpu_rope_args & args, const float * x, float * y) {
    vf squares = {};
    each_vector(args.d_head, [&](int64_t i, int n) {
        const vf v = take(x + i, n);
        squares    = fma(v, v, squares);
    });
    const float factor = 1.0f / __builtin_sqrtf(sum(squares) / static_cast<float>(args.d_head) + args.eps);
    each_vector(args.d_head, [&](int64_t i, int n) {
        const vf v = take(x + i, n) * factor;
        put(y + i, args.weight ? v * take(args.weight + i, n) : v, n);
    });
}

void row(const ggml_ext_cpu_rope_args & args, const rope_table & table, const float * x, float * dst, float * scratch) {
    if (args.norm) {
        rms_norm(args, x, scratch);
        x = scratch;
    }
    const float * in  = x + args.rot_first;
    float *       out = dst + args.rot_first;
    if (args.pairs == GGML_EXT_CPU_ROPE_INTERLEAVED) {
        each_vector(args.d_rot, [&](int64_t i, int n) {
            const vf v = take(in + i, n);
            put(out + i, fma(v, take(table.own + i, n), swap_pairs(v) * take(table.other + i, n)), n);
        });
    } else {
        const int64_t half = args.d_rot / 2;
        each_vector(half, [&](int64_t i, int n) {
            const vf a = take(in + i, n), b = take(in + half + i, n);
            put(out + i, fma(a, take(table.own + i, n), b * take(table.other + i, n)), n);
            put(out + half + i, fma(b, take(table.own + half + i, n), a * take(table.other + half + i, n)), n);
        });
    }
    const int64_t end = args.rot_first + args.d_rot;
    if (x != dst) {
        memcpy(dst, x, static_cast<size_t>(args.rot_first) * sizeof(float));
        memcpy(dst + end, x + end, static_cast<size_t>(args.d_head - end) * sizeof(float));
    }
}

} // namespace

const rope_kernels GGML_EXT_KERNELS(rope) = {row};
