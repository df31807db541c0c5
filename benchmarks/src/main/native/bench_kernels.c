// The C side of the kernels that are compared, for two works on rows of F32:
//
//     affine      y = x * 0.5 + 0.25
//     rms_norm    y = x / sqrt(mean(x^2) + 1e-6)
//
// They are registered in two ways: for operators that Java registered, by ggml_ext_kernel_library_init; and together with
// operators of their own, all in C, by bench_register_direct.

#include "ggml-ext.h"

#include <math.h>
#include <stddef.h>

enum {
    TYPE_F32 = 0
}; // GGML_TYPE_F32

// Partial sums side by side, as many as four vectors of 512 bits hold: the compiler may use vectors without being allowed
// to reorder additions.
enum {
    LANES = 64
};

typedef void (*row_function)(int64_t n, const float * x, float * y);

static void affine_row(int64_t n, const float * x, float * y) {
    for (int64_t i = 0; i < n; i++) {
        y[i] = fmaf(x[i], 0.5f, 0.25f);
    }
}

static void rms_norm_row(int64_t n, const float * x, float * y) {
    float   sums[LANES] = {0};
    int64_t i           = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            sums[j] = fmaf(x[i + j], x[i + j], sums[j]);
        }
    }
    float squares = 0.0f;
    for (int j = 0; j < LANES; j++) {
        squares += sums[j];
    }
    for (; i < n; i++) {
        squares = fmaf(x[i], x[i], squares);
    }
    const float factor = 1.0f / sqrtf(squares / (float) n + 1e-6f);
    for (i = 0; i < n; i++) {
        y[i] = x[i] * factor;
    }
}

static int for_rows(const struct ggml_ext_exec_params * params, int32_t ith, int32_t nth, row_function function) {
    const struct ggml_ext_tensor * src  = params->nodes[0]->src[0];
    const struct ggml_ext_tensor * dst  = params->nodes[0]->dst;
    const int64_t                  n    = dst->ne[0];
    const int64_t                  rows = dst->ne[1] * dst->ne[2] * dst->ne[3];
    for (int64_t row = rows * ith / nth; row < rows * (ith + 1) / nth; row++) {
        function(n, (const float *) src->data + row * n, (float *) dst->data + row * n);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

static int run_affine(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    return for_rows(params, ith, nth, affine_row);
}

static int run_rms_norm(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    return for_rows(params, ith, nth, rms_norm_row);
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
    if (node->n_src != 1 || !is_contiguous_f32(node->src[0]) || !is_contiguous_f32(node->dst)) {
        ggml_ext_set_error("expected one contiguous F32 source");
        return 0;
    }
    return 1;
}

static int infer(
    int32_t                                n_src,
    const struct ggml_ext_tensor * const * src,
    const void *                           attrs,
    struct ggml_ext_output *               out,
    void *                                 user_data) {
    (void) attrs;
    (void) user_data;
    if (n_src != 1 || src[0]->type != TYPE_F32) {
        ggml_ext_set_error("expected one F32 source");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    for (int d = 0; d < GGML_EXT_MAX_DIMS; d++) {
        out->ne[d] = src[0]->ne[d];
    }
    return GGML_EXT_STATUS_SUCCESS;
}

typedef int (*run_function)(const struct ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *);

static int register_kernel(
    struct ggml_backend_device *    device,
    const char *                    name,
    const char *                    op,
    run_function                    run,
    struct ggml_ext_registration ** out) {
    const struct ggml_ext_kernel_desc desc = {
        .struct_size = sizeof(desc),
        .name        = name,
        .op          = op,
        .supports    = supports,
        .run         = run,
    };
    return ggml_ext_register_kernel(device, &desc, out);
}

// The operators are Java's; only the kernels are registered here.
GGML_EXT_API int ggml_ext_kernel_library_init(
    struct ggml_backend_device * device,
    ggml_ext_add_registration    add,
    void *                       context) {
    struct ggml_ext_registration * affine   = NULL;
    struct ggml_ext_registration * rms_norm = NULL;
    int                            status   = register_kernel(device, "bench.affine.c", "bench.affine.c.v1", run_affine, &affine);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = register_kernel(device, "bench.rms_norm.c", "bench.rms_norm.c.v1", run_rms_norm, &rms_norm);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = add(affine, context);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = add(rms_norm, context);
    }
    if (status != GGML_EXT_STATUS_SUCCESS) {
        if (rms_norm != NULL) {
            ggml_ext_unregister(rms_norm);
        }
        if (affine != NULL) {
            ggml_ext_unregister(affine);
        }
    }
    return status;
}

static int register_direct(struct ggml_backend_device * device, const char * name, const char * op, run_function run) {
    const struct ggml_ext_op_desc desc = {
        .struct_size = sizeof(desc),
        .name        = op,
        .infer       = infer,
    };
    const int status = ggml_ext_register_op(&desc, NULL);
    return status == GGML_EXT_STATUS_SUCCESS ? register_kernel(device, name, op, run, NULL) : status;
}

// What a C program does that knows nothing of Java: operators and kernels, for the rest of the process's life.
GGML_EXT_API int bench_register_direct(struct ggml_backend_device * device) {
    const int status = register_direct(device, "bench.affine.direct", "bench.affine.direct.v1", run_affine);
    return status == GGML_EXT_STATUS_SUCCESS
               ? register_direct(device, "bench.rms_norm.direct", "bench.rms_norm.direct.v1", run_rms_norm)
               : status;
}
