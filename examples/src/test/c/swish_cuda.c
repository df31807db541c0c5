// The CUDA kernel library that docs/cuda.md shows; DocsTest compiles it.

// docs: C module
#include "ggml-ext.h"

#include <string.h>

static const char text[] =
    "extern \"C\" __global__ void swish(const float * x, float * y, float beta, long long n) {\n"
    "    const long long i = (long long) blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = x[i] / (1.0f + expf(-beta * x[i]));\n"
    "}\n";

static int execute(const struct ggml_ext_exec_params * params, void * user_data) {
    const struct ggml_ext_node * node = params->nodes[0];
    const void *    x = node->src[0]->data; // addresses on the device
    void *          y = node->dst->data;
    float           beta;
    const long long n = (long long) (node->dst->nbytes / sizeof(float));
    memcpy(&beta, node->attrs, sizeof(beta));
    const struct ggml_ext_cuda_launch_params launch = {
        .struct_size = sizeof(launch),
        .module      = user_data,
        .function    = "swish",
        .grid        = {(uint32_t) ((n + 255) / 256), 1, 1},
        .block       = {256, 1, 1},
        .n_args      = 4,
        .args        = (const void *[]) {&x, &y, &beta, &n},
        .arg_sizes   = (size_t[]) {sizeof(x), sizeof(y), sizeof(beta), sizeof(n)},
    };
    return ggml_ext_cuda_launch(params->backend, &launch);
}

static int32_t supports(const struct ggml_ext_node * node, void * user_data) {
    (void) user_data;
    size_t stride = sizeof(float);
    for (int d = 0; d < GGML_EXT_MAX_DIMS; d++) {
        if (node->src[0]->ne[d] != 1 && node->src[0]->nb[d] != stride) {
            ggml_ext_set_error("the source is not contiguous");
            return 0;
        }
        stride *= (size_t) node->src[0]->ne[d];
    }
    return 1;
}

static void release(void * user_data) {
    ggml_ext_cuda_module_free(user_data);
}

GGML_EXT_API int ggml_ext_kernel_library_init(
        struct ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    const struct ggml_ext_cuda_source source = {.struct_size = sizeof(source), .text = text, .name = "swish.cu"};
    struct ggml_ext_cuda_module *     module = NULL;
    int status = ggml_ext_cuda_module_compile(device, &source, &module);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status; // the message holds the compiler's log
    }
    const struct ggml_ext_kernel_desc desc = {
        .struct_size = sizeof(desc),
        .name        = "app.swish.cuda",
        .op          = "app.swish.v1",
        .user_data   = module,
        .supports    = supports,
        .execute     = execute,
        .release     = release,
    };
    struct ggml_ext_registration * registration = NULL;
    status = ggml_ext_register_kernel_ex(
            device, &desc, GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE, &registration);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        ggml_ext_cuda_module_free(module);
        return status;
    }
    status = add(registration, context);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        ggml_ext_unregister(registration);
    }
    return status;
}
// docs: end
