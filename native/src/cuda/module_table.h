#pragma once
// The live handles of modules.

#include "cuda/module.h"
#include "cuda/nvrtc.h"

#include <unordered_map>

// Kept in memory by whoever has launched from it, so a handle that was freed is still told from others there.
struct ggml_ext_cuda_module {
    explicit ggml_ext_cuda_module(std::unique_ptr<ggml_ext::cuda::module> m) : code(std::move(m)) {}

    std::unique_ptr<const ggml_ext::cuda::module> code;
    std::atomic<bool>                             freed{false};
};

namespace ggml_ext::cuda {

using module_ptr = std::shared_ptr<ggml_ext_cuda_module>;

class module_table {
public:
    // `out` gets the handle; all return a status
    int compile(std::shared_ptr<const device> device, const source & s, ggml_ext_cuda_module *& out);
    int load(std::shared_ptr<const device> device, const void * image, size_t size, ggml_ext_cuda_module *& out);
    int free(ggml_ext_cuda_module * handle);

    // INVALID_ARGUMENT where the handle is not a live one
    int find(const ggml_ext_cuda_module * handle, module_ptr & out) const;

private:
    int add(std::shared_ptr<const device> device, const std::string & image, ggml_ext_cuda_module *& out);

    mutable std::mutex                                           mutex_;
    std::unordered_map<const ggml_ext_cuda_module *, module_ptr> modules_;
    std::mutex                                                   nvrtc_mutex_;
    std::shared_ptr<const nvrtc>                                 nvrtc_; // once it was needed
};

} // namespace ggml_ext::cuda
