#pragma once
// Modules of the fake driver with a kernel swish(x, y, beta, n), and a ggml kernel that launches it.

#include "cuda/fixture.h"
#include "fake_images.h"

namespace ggml_ext::test {

constexpr char     SWISH_ENTRY[]      = ".entry swish 8,8,4,8 256 1024\n";
constexpr uint32_t SWISH_MAX_THREADS  = 256;
constexpr size_t   SWISH_STATIC_BYTES = 1024;

inline const char SWISH_TEXT[] = "extern \"C\" __global__ void swish(const float * x, float * y, float beta, long long n)\n"
                                 "{ /* the fake driver knows what it does */ }\n";

// a thread an element: what the grid leaves out stays as it was
inline void define_fake_swish() {
    fake_cuda_set_kernel("swish", [](const fake_cuda_kernel_run * r) {
        const float * x;
        float *       y;
        float         beta;
        int64_t       n;
        std::memcpy(&x, r->args[0], sizeof(x));
        std::memcpy(&y, r->args[1], sizeof(y));
        std::memcpy(&beta, r->args[2], sizeof(beta));
        std::memcpy(&n, r->args[3], sizeof(n));
        for (int64_t i = 0; i < n && i < int64_t{r->grid[0]} * r->block[0]; ++i) {
            y[i] = x[i] / (1.0f + std::exp(-beta * x[i]));
        }
    });
}

inline ggml_ext_cuda_module * load_module(ggml_backend_device * device, const std::string & image) {
    ggml_ext_cuda_module * module = nullptr;
    REQUIRE_OK(ggml_ext_cuda_module_load(device, image.data(), image.size(), &module));
    return module;
}

// A kernel of test.swish.v1 that launches from a module.
struct module_swish {
    ggml_ext_cuda_module * module = nullptr;
    std::atomic<int>       calls{0};
    // (optional) called first; a status
    std::function<int(ggml_backend *)> first;
    // (optional) may change what is launched, and on which backend
    std::function<void(ggml_ext_cuda_launch_params &, ggml_backend *&)> change;
};

inline int execute_module_swish(const ggml_ext_exec_params * p, void * user_data) {
    auto & kernel = *static_cast<module_swish *>(user_data);
    ++kernel.calls;
    if (kernel.first != nullptr) {
        if (const int status = kernel.first(p->backend); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
    }
    const ggml_ext_node & node = *p->nodes[0];
    const void *          x    = node.src[0]->data;
    void *                y    = node.dst->data;
    const int64_t         n    = static_cast<int64_t>(node.dst->nbytes / sizeof(float));
    float                 beta;
    std::memcpy(&beta, node.attrs, sizeof(beta));
    const void * const          args[]  = {&x, &y, &beta, &n};
    const size_t                sizes[] = {sizeof(x), sizeof(y), sizeof(beta), sizeof(n)};
    ggml_ext_cuda_launch_params launch{};
    launch.struct_size = sizeof(launch);
    launch.module      = kernel.module;
    launch.function    = "swish";
    launch.grid[0]     = static_cast<uint32_t>((n + 15) / 16);
    launch.grid[1] = launch.grid[2] = 1;
    launch.block[0]                 = 16;
    launch.block[1] = launch.block[2] = 1;
    launch.n_args                     = 4;
    launch.args                       = args;
    launch.arg_sizes                  = sizes;
    ggml_backend * backend            = p->backend;
    if (kernel.change != nullptr) {
        kernel.change(launch, backend);
    }
    return ggml_ext_cuda_launch(backend, &launch);
}

// the operator and that kernel of it
struct registered_module_swish {
    registration op, kernel;
    module_swish swish;

    registered_module_swish(ggml_backend_device * device, ggml_ext_cuda_module * module, uint32_t flags) {
        define_fake_swish();
        swish.module = module;
        REQUIRE_OK(register_swish(op));
        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.swish.module";
        desc.op          = "test.swish.v1";
        desc.user_data   = &swish;
        desc.supports    = supports_f32;
        desc.execute     = execute_module_swish;
        REQUIRE_OK(ggml_ext_register_kernel_ex(device, &desc, flags, &kernel.handle));
    }
};

inline void check_message(const char * part) {
    const std::string message = ggml_ext_last_error();
    CHECK_MESSAGE(message.find(part) != std::string::npos, "\"" << message << "\" lacks \"" << std::string(part) << "\"");
}

} // namespace ggml_ext::test
