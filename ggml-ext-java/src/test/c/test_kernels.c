// A kernel library for tests: SQR, which adds 1000; SIN, which fails with a message. Compiled by KernelLibraryTest;
// with TEST_KERNELS_FAIL its registration fails.

#include "ggml-ext.h"

#include <string.h>

static int run_sqr(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    const struct ggml_ext_node * node = params->nodes[0];
    const float *                x    = node->src[0]->data;
    float *                      y    = node->dst->data;
    const int64_t                n    = (int64_t) (node->dst->nbytes / sizeof(float));
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; ++i) {
        y[i] = x[i] * x[i] + 1000;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

static int run_sin(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) params;
    (void) phase;
    (void) ith;
    (void) nth;
    (void) user_data;
    ggml_ext_set_error("the C kernel has no mood for this");
    return GGML_EXT_STATUS_FAILED;
}

static int32_t supports_contiguous_f32(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    return node->dst->type == 0 && node->src[0]->nb[0] == sizeof(float);
}

static int add_kernel(struct ggml_backend_device * device, const char * name, const char * op,
                      int (*run)(const struct ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *),
                      ggml_ext_add_registration add, void * context) {
    struct ggml_ext_kernel_desc    desc;
    struct ggml_ext_registration * registration = NULL;
    memset(&desc, 0, sizeof(desc));
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.supports    = supports_contiguous_f32;
    desc.run         = run;
    const int status = ggml_ext_register_kernel(device, &desc, &registration);
    return status == GGML_EXT_STATUS_SUCCESS ? add(registration, context) : status;
}

GGML_EXT_API int ggml_ext_kernel_library_init(struct ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
#ifdef TEST_KERNELS_FAIL
    (void) add_kernel;
    (void) run_sqr;
    (void) run_sin;
    (void) device;
    (void) add;
    (void) context;
    ggml_ext_set_error("this library wants another processor");
    return GGML_EXT_STATUS_UNSUPPORTED;
#else
    const int status = add_kernel(device, "test.c.sqr", "SQR", run_sqr, add, context);
    return status == GGML_EXT_STATUS_SUCCESS ? add_kernel(device, "test.c.sin", "SIN", run_sin, add, context) : status;
#endif
}
