#pragma once
// Launches of modules' kernels on one backend, and the modules that it has launched from: its recordings may hold their code.

#include "cuda/module_table.h"

namespace ggml_ext::exec {

class cuda_launcher {
public:
    explicit cuda_launcher(std::shared_ptr<const cuda::device> device) : device_(std::move(device)) {}

    // On execute's thread, with the device current. A status.
    int launch(cuda::CUstream stream, const ggml_ext_cuda_launch_params & params);

private:
    // a module with the kernels of it that were launched, found without its lock
    struct used_module {
        cuda::module_ptr                                           module;
        std::map<std::string, const cuda::function *, std::less<>> functions;
    };

    int find(const ggml_ext_cuda_module * handle, used_module *& out);
    int find(used_module & m, const char * name, const cuda::function *& out);

    std::shared_ptr<const cuda::device>                           device_;
    std::unordered_map<const ggml_ext_cuda_module *, used_module> used_;
};

} // namespace ggml_ext::exec
