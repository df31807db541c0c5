// A kernel library in plain C that knows ggml-ext.h alone: the operator test.square_plus.v1(x; bias) = x * x + bias and its CPU
// kernel.
//   cc -std=c11 -shared -fPIC -I../../include kernel_library.c -o kernel_library.so
// It is not linked to ggml-ext: the process that loads it has it.

#include "ggml-ext.h"

#include <string.h>

struct square_plus {
    float bias;
};

static int infer(int32_t n_src, const struct ggml_ext_tensor * const * src, const void * attrs, struct ggml_ext_output * out,
                 void * user_data) {
    (void) attrs;
    (void) user_data;
    if (n_src != 1 || src[0]->type != 0) {
        ggml_ext_set_error("test.square_plus.v1 takes one F32 source");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    memcpy(out->ne, src[0]->ne, sizeof(out->ne));
    return GGML_EXT_STATUS_SUCCESS;
}

static int32_t supports(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    const struct ggml_ext_tensor * x = node->src[0];
    if (x->nb[0] != sizeof(float) || x->nb[1] != x->nb[0] * (size_t) x->ne[0] || x->nb[2] != x->nb[1] * (size_t) x->ne[1] ||
        x->nb[3] != x->nb[2] * (size_t) x->ne[2]) {
        ggml_ext_set_error("the source is not contiguous");
        return 0;
    }
    return 1;
}

static int run(const struct ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    (void) phase;
    (void) user_data;
    const struct ggml_ext_node * node = params->nodes[0];
    const float *                x    = node->src[0]->data;
    float *                      y    = node->dst->data;
    struct square_plus           attrs;
    memcpy(&attrs, node->attrs, sizeof(attrs));
    const size_t n = node->dst->nbytes / sizeof(float);
    for (size_t i = n * (size_t) ith / (size_t) nth; i < n * ((size_t) ith + 1) / (size_t) nth; ++i) {
        y[i] = x[i] * x[i] + attrs.bias;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

GGML_EXT_API int ggml_ext_kernel_library_init(struct ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    struct ggml_ext_registration * op     = NULL;
    struct ggml_ext_registration * kernel = NULL;

    struct ggml_ext_op_desc op_desc = {0};
    op_desc.struct_size             = sizeof(op_desc);
    op_desc.name                    = "test.square_plus.v1";
    op_desc.attrs_size              = sizeof(struct square_plus);
    op_desc.infer                   = infer;

    struct ggml_ext_kernel_desc kernel_desc = {0};
    kernel_desc.struct_size                 = sizeof(kernel_desc);
    kernel_desc.name                        = "test.square_plus.c";
    kernel_desc.op                          = "test.square_plus.v1";
    kernel_desc.supports                    = supports;
    kernel_desc.run                         = run;

    int status = ggml_ext_register_op(&op_desc, &op);
    if (status == GGML_EXT_STATUS_DUPLICATE) { // another device has brought it
        status = GGML_EXT_STATUS_SUCCESS;
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = ggml_ext_register_kernel(device, &kernel_desc, &kernel);
    }
    // the kernel comes last, so that whoever withdraws from the end can
    if (status == GGML_EXT_STATUS_SUCCESS && op != NULL) {
        status = add(op, context);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = add(kernel, context);
    }
    if (status != GGML_EXT_STATUS_SUCCESS) {
        char reason[256];
        strncpy(reason, ggml_ext_last_error(), sizeof(reason) - 1);
        reason[sizeof(reason) - 1] = '\0';
        if (kernel != NULL) {
            ggml_ext_unregister(kernel);
        }
        if (op != NULL) {
            ggml_ext_unregister(op);
        }
        ggml_ext_set_error(reason);
    }
    return status;
}
