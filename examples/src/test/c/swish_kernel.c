// The kernel library that docs/writing-a-kernel.md shows; DocsTest and SnippetsTest compile it.

// docs: C kernel
#include "ggml-ext.h"

#include <math.h>
#include <string.h>

// y = x / (1 + exp(-beta * x)); the operator, its inference and its attributes are Java's
static int32_t supports(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    const struct ggml_ext_tensor * x = node->src[0];
    size_t stride = sizeof(float);
    for (int d = 0; d < GGML_EXT_MAX_DIMS; d++) {
        if (x->ne[d] != 1 && x->nb[d] != stride) {
            ggml_ext_set_error("the source is not contiguous");
            return 0;
        }
        stride *= (size_t) x->ne[d];
    }
    return 1;
}

static int run(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    const struct ggml_ext_node * node = params->nodes[0];
    const float * x = node->src[0]->data;
    float *       y = node->dst->data;
    float         beta;
    memcpy(&beta, node->attrs, sizeof(beta));
    const int64_t n = (int64_t) (node->dst->nbytes / sizeof(float));
    for (int64_t i = n * ith / nth; i < n * (ith + 1) / nth; i++) {
        y[i] = x[i] / (1.0f + expf(-beta * x[i]));
    }
    return GGML_EXT_STATUS_SUCCESS;
}

GGML_EXT_API int ggml_ext_kernel_library_init(
        struct ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    const struct ggml_ext_kernel_desc desc = {
        .struct_size = sizeof(desc),
        .name        = "app.swish.c",
        .op          = "app.swish.v1",
        .priority    = 1, // before the kernel in Java
        .supports    = supports,
        .run         = run,
    };
    struct ggml_ext_registration * registration = NULL;
    int status = ggml_ext_register_kernel(device, &desc, &registration);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = add(registration, context);
        if (status != GGML_EXT_STATUS_SUCCESS) {
            ggml_ext_unregister(registration);
        }
    }
    return status;
}
// docs: end
