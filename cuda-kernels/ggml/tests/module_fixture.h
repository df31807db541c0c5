#pragma once
// Modules of module_kernels.cu, and ggml kernels that launch from them.

#include "core/swish.h"
#include "fixture.h"
#include "module_images.h"

namespace ggml_ext::test {

class cuda_module {
public:
    explicit cuda_module(std::string_view image) { REQUIRE_OK(ggml_ext_cuda_module_load(attached_gpu(), image.data(), image.size(), &handle_)); }
    explicit cuda_module(ggml_ext_cuda_module * handle) : handle_(handle) {}
    ~cuda_module() { free(); }
    cuda_module(const cuda_module &)             = delete;
    cuda_module & operator=(const cuda_module &) = delete;

    ggml_ext_cuda_module * get() const { return handle_; }

    void free() {
        if (handle_ != nullptr) {
            CHECK_OK(ggml_ext_cuda_module_free(handle_));
            handle_ = nullptr;
        }
    }

private:
    ggml_ext_cuda_module * handle_ = nullptr;
};

inline int compile(const char * text, ggml_ext_cuda_module ** out, std::vector<const char *> options = {}) {
    const ggml_ext_cuda_source source{sizeof(source), text, "test.cu", static_cast<int32_t>(options.size()), options.data()};
    return ggml_ext_cuda_module_compile(attached_gpu(), &source, out);
}

// "" where source text can be compiled here, else why not
inline std::string no_compiler() {
    ggml_ext_cuda_module * module = nullptr;
    const int              status = compile(kernels_text().data(), &module);
    if (status == GGML_EXT_STATUS_UNSUPPORTED) {
        return ggml_ext_last_error();
    }
    REQUIRE_OK(status);
    CHECK_OK(ggml_ext_cuda_module_free(module));
    return "";
}

// what a kernel of ours launches, for a node
struct module_kernel {
    ggml_ext_cuda_module * module = nullptr;
    int                    calls  = 0; // of execute
};

// swish(x, y, beta, n), a kernel of an operator with one attribute
inline int execute_module_swish(const ggml_ext_exec_params * p, void * user_data) {
    auto & kernel = *static_cast<module_kernel *>(user_data);
    ++kernel.calls;
    const ggml_ext_node & node = *p->nodes[0];
    const void *          x    = node.src[0]->data;
    void *                y    = node.dst->data;
    const long long       n    = static_cast<long long>(node.dst->nbytes / sizeof(float));
    float                 beta;
    std::memcpy(&beta, node.attrs, sizeof(beta));
    const void * const                args[]  = {&x, &y, &beta, &n};
    const size_t                      sizes[] = {sizeof(x), sizeof(y), sizeof(beta), sizeof(n)};
    const ggml_ext_cuda_launch_params launch{sizeof(launch), kernel.module, "swish", {static_cast<uint32_t>((n + 255) / 256), 1, 1}, {256, 1, 1}, 0, 4, args, sizes, GGML_EXT_CUDA_LAUNCH_EARLY};
    return ggml_ext_cuda_launch(p->backend, &launch);
}

inline void register_module_kernel(registration & r, const char * name, const char * op, module_kernel & kernel,
                                   int (*execute)(const ggml_ext_exec_params *, void *)) {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.user_data   = &kernel;
    desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
    desc.execute     = execute;
    REQUIRE_OK(ggml_ext_register_kernel_ex(attached_gpu(), &desc, GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE, &r.handle));
}

} // namespace ggml_ext::test
