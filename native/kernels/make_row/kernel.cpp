#include "kernel.h"
#include "row_norm.h"
#include "vmath.h"

namespace {

void norm(const ggml_ext_cpu_row & row, int64_t n, float * dst) {
    vf mean = {};
    if (row.kind == GGML_EXT_CPU_ROW_NORM) {
        vf total = {};
        each_vector(n, [&](int64_t i, int lanes) { total += take(row.x + i, lanes); });
        mean = mean_from(total, n);
    }
    const vf factor = norm_factor(row.x, n, mean, row.eps);
    each_vector(n, [&](int64_t i, int lanes) {
        vf v = (take(row.x + i, lanes) - mean) * factor;
        if (row.weight) {
            v = v * take(row.weight + i, lanes);
        }
        if (row.modulation) {
            v = v + v * take(row.modulation + i, lanes);
        }
        if (row.shift) {
            v = v + take(row.shift + i, lanes);
        }
        put(dst + i, v, lanes);
    });
}

void make(const ggml_ext_cpu_row & row, int64_t n, float * dst) {
    const float * x = row.x;
    const float * y = row.y;
    switch (row.kind) {
        case GGML_EXT_CPU_ROW_SCALE:
            each_vector(n, [&](int64_t i, int lanes) { put(dst + i, take(x + i, lanes) * row.factor + row.offset, lanes); });
            break;
        case GGML_EXT_CPU_ROW_GELU_ERF:
            each_vector(n, [&](int64_t i, int lanes) { put(dst + i, gelu_erf(take(x + i, lanes)), lanes); });
            break;
        case GGML_EXT_CPU_ROW_SILU_MUL:
            each_vector(n, [&](int64_t i, int lanes) {
                const vf v = take(x + i, lanes);
                put(dst + i, v / (1.0f + exp(-v)) * take(y + i, lanes), lanes);
            });
            break;
        case GGML_EXT_CPU_ROW_SIGMOID_MUL:
            each_vector(n, [&](int64_t i, int lanes) {
                put(dst + i, 1.0f / (1.0f + exp(-take(x + i, lanes))) * take(y + i, lanes), lanes);
            });
            break;
        default:
            norm(row, n, dst);
            break;
    }
}

} // namespace

const make_row_kernels GGML_EXT_KERNELS(make_row) = {make};
