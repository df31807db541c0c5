// A library of one kernel, in C, for the operator minilm.residual_norm.v1 that ResidualNorm.java describes:
//
//     y = norm(x + bias + residual) * scale + shift
//
// x, residual, y: [n, rows...] F32, bias, scale, shift: [n] F32. Attributes: struct { float epsilon; }.
// Five nodes of a plain graph (ADD, ADD, NORM, MUL, ADD) read and write the rows five times; this does it once.

#include "ggml-ext.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#    define MULTIVERSION __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#    define MULTIVERSION
#endif

enum {
    X,
    BIAS,
    RESIDUAL,
    SCALE,
    SHIFT,
    N_SRC
};

enum {
    TYPE_F32 = 0
}; // GGML_TYPE_F32

// Partial sums side by side: the compiler may use vectors without being allowed to reorder additions.
enum {
    LANES = 16
};

static float total(const float * lanes) {
    float sum = 0.0f;
    for (int i = 0; i < LANES; i++) {
        sum += lanes[i];
    }
    return sum;
}

// n is a multiple of LANES; y may be x or residual
MULTIVERSION
static void residual_norm_row(
    int64_t       n,
    float         epsilon,
    const float * x,
    const float * bias,
    const float * residual,
    const float * scale,
    const float * shift,
    float *       y) {
    float sums[LANES] = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            const float value = x[i + j] + bias[i + j] + residual[i + j];
            y[i + j]          = value;
            sums[j] += value;
        }
    }
    const float mean = total(sums) / (float) n;

    float squares[LANES] = {0};
    for (int64_t i = 0; i < n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            const float distance = y[i + j] - mean;
            squares[j] += distance * distance;
        }
    }
    const float factor = 1.0f / sqrtf(total(squares) / (float) n + epsilon);

    for (int64_t i = 0; i < n; i++) {
        y[i] = (y[i] - mean) * factor * scale[i] + shift[i];
    }
}

static bool is_contiguous_f32(const struct ggml_ext_tensor * tensor) {
    size_t stride = sizeof(float);
    for (int d = 0; d < GGML_EXT_MAX_DIMS; d++) {
        if (tensor->ne[d] != 1 && tensor->nb[d] != stride) {
            return false;
        }
        stride *= (size_t) tensor->ne[d];
    }
    return tensor->type == TYPE_F32;
}

static int32_t supports(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    if (node->n_src != N_SRC || node->attrs_size != sizeof(float)) {
        ggml_ext_set_error("expected 5 sources and 4 bytes of attributes");
        return 0;
    }
    if (node->dst->ne[0] % LANES != 0) {
        ggml_ext_set_error("the length of a row is no multiple of 16");
        return 0;
    }
    for (int i = 0; i < N_SRC; i++) {
        if (node->src[i] == NULL || !is_contiguous_f32(node->src[i])) {
            ggml_ext_set_error("expected contiguous F32 sources");
            return 0;
        }
    }
    return 1;
}

static int run(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    const struct ggml_ext_node *   node  = params->nodes[0];
    const struct ggml_ext_tensor * dst   = node->dst;
    const int64_t                  n     = dst->ne[0];
    const int64_t                  rows  = dst->ne[1] * dst->ne[2] * dst->ne[3];
    const int64_t                  first = rows * ith / nth;
    const int64_t                  end   = rows * (ith + 1) / nth;
    float                          epsilon;
    memcpy(&epsilon, node->attrs, sizeof(epsilon));
    for (int64_t row = first; row < end; row++) {
        residual_norm_row(n, epsilon,
                          (const float *) node->src[X]->data + row * n,
                          (const float *) node->src[BIAS]->data,
                          (const float *) node->src[RESIDUAL]->data + row * n,
                          (const float *) node->src[SCALE]->data,
                          (const float *) node->src[SHIFT]->data,
                          (float *) dst->data + row * n);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

// The operator is Java's; only the kernel is registered here.
GGML_EXT_API int ggml_ext_kernel_library_init(
    struct ggml_backend_device * device,
    ggml_ext_add_registration    add,
    void *                       context) {
    const struct ggml_ext_kernel_desc desc = {
        .struct_size = sizeof(desc),
        .name        = "minilm.residual_norm.c",
        .op          = "minilm.residual_norm.v1",
        .supports    = supports,
        .run         = run,
    };
    struct ggml_ext_registration * registration = NULL;
    int                            status       = ggml_ext_register_kernel(device, &desc, &registration);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    status = add(registration, context);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        ggml_ext_unregister(registration);
    }
    return status;
}
