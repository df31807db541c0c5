// A kernel of example.snake.v1 in C, over ggml-ext.h alone. The operator itself is Java's: Snake.java.

#include "ggml-ext.h"

#include <math.h>
#include <string.h>

struct snake_attributes {
    float a;
};

static int32_t supports(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    if (node->src[0]->nb[0] != sizeof(float)) {
        ggml_ext_set_error("the rows have gaps");
        return 0;
    }
    return 1;
}

// rows may lie anywhere: three dimensions of strides
static float * row_of(const struct ggml_ext_tensor * tensor, int64_t row) {
    const int64_t i1 = row % tensor->ne[1];
    const int64_t i2 = row / tensor->ne[1] % tensor->ne[2];
    const int64_t i3 = row / tensor->ne[1] / tensor->ne[2];
    return (float *) ((char *) tensor->data + i1 * (int64_t) tensor->nb[1] + i2 * (int64_t) tensor->nb[2] + i3 * (int64_t) tensor->nb[3]);
}

static int run(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    const struct ggml_ext_node * node = params->nodes[0];
    struct snake_attributes      attributes;
    memcpy(&attributes, node->attrs, sizeof(attributes)); // may lie unaligned

    const float   a    = attributes.a;
    const int64_t n    = node->dst->ne[0];
    const int64_t rows = node->dst->ne[1] * node->dst->ne[2] * node->dst->ne[3];
    for (int64_t row = rows * ith / nth; row < rows * (ith + 1) / nth; row++) {
        const float * x = row_of(node->src[0], row);
        float *       y = row_of(node->dst, row);
        for (int64_t i = 0; i < n; i++) {
            const float sine = sinf(a * x[i]);
            y[i]             = x[i] + sine * sine / a;
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

GGML_EXT_API int ggml_ext_kernel_library_init(
    struct ggml_backend_device * device,
    ggml_ext_add_registration    add,
    void *                       context) {
    const struct ggml_ext_kernel_desc desc = {
        .struct_size = sizeof(desc),
        .name        = "example.snake.c",
        .op          = "example.snake.v1",
        .priority    = 1, // before the kernel in Java
        .supports    = supports,
        .run         = run,
    };
    struct ggml_ext_registration * registration = NULL;
    int                            status       = ggml_ext_register_kernel(device, &desc, &registration);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = add(registration, context);
        if (status != GGML_EXT_STATUS_SUCCESS) {
            ggml_ext_unregister(registration);
        }
    }
    return status;
}
