#include "exec/cuda_launch.h"

#include "exec/runtime.h"
#include "support/status.h"

#include <string_view>

namespace ggml_ext::exec {

namespace {

// the same on every GPU since compute capability 3.0
constexpr uint32_t MAX_GRID[3]  = {0x7fffffff, 65535, 65535};
constexpr uint32_t MAX_BLOCK[3] = {1024, 1024, 64};

int refuse(const ggml_ext_cuda_launch_params & p, const std::string & why) {
    return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: kernel %.160s: %s", p.function, why.c_str());
}

int check_args(const ggml_ext_cuda_launch_params & p, const cuda::function & f) {
    if (p.n_args < 0 || static_cast<size_t>(p.n_args) != f.param_sizes.size()) {
        return refuse(p, format("%d arguments, expected %zu", p.n_args, f.param_sizes.size()));
    }
    if (p.n_args > 0 && (p.args == nullptr || p.arg_sizes == nullptr)) {
        return refuse(p, p.args == nullptr ? "args is NULL" : "arg_sizes is NULL");
    }
    for (int32_t i = 0; i < p.n_args; ++i) {
        if (p.args[i] == nullptr) {
            return refuse(p, format("args[%d] is NULL, expected the address of its value", i));
        }
        if (p.arg_sizes[i] != f.param_sizes[static_cast<size_t>(i)]) {
            return refuse(p, format("argument %d has %zu bytes, expected %zu", i, p.arg_sizes[i], f.param_sizes[static_cast<size_t>(i)]));
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int check_flags(const ggml_ext_cuda_launch_params & p) {
    return (p.flags & ~uint32_t{GGML_EXT_CUDA_LAUNCH_EARLY}) == 0 ? static_cast<int>(GGML_EXT_STATUS_SUCCESS)
                                                                  : refuse(p, format("flags is 0x%x, expected 0 or GGML_EXT_CUDA_LAUNCH_EARLY", p.flags));
}

int check_shape(const ggml_ext_cuda_launch_params & p, const cuda::function & f) {
    for (int i = 0; i < 3; ++i) {
        if (p.grid[i] == 0 || p.grid[i] > MAX_GRID[i]) {
            return refuse(p, format("grid[%d] = %u, expected 1 to %u", i, p.grid[i], MAX_GRID[i]));
        }
        if (p.block[i] == 0 || p.block[i] > MAX_BLOCK[i]) {
            return refuse(p, format("block[%d] = %u, expected 1 to %u", i, p.block[i], MAX_BLOCK[i]));
        }
    }
    const uint64_t threads = uint64_t{p.block[0]} * p.block[1] * p.block[2];
    if (threads > static_cast<uint64_t>(f.max_threads_per_block)) {
        return refuse(p, format("blocks of %u x %u x %u threads, but this kernel runs with at most %d on this GPU", p.block[0], p.block[1],
                                p.block[2], f.max_threads_per_block));
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

int cuda_launcher::find(const ggml_ext_cuda_module * handle, used_module *& out) {
    const auto known = used_.find(handle);
    if (known != used_.end()) {
        if (known->second.module->freed.load(std::memory_order_acquire)) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: module %p was freed", static_cast<const void *>(handle));
        }
        out = &known->second;
        return GGML_EXT_STATUS_SUCCESS;
    }
    cuda::module_ptr module;
    if (const int status = runtime::get().modules().find(handle, module); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const cuda::device & of = module->code->device();
    if (of.ordinal != device_->ordinal) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: module %p was made for GPU %d, and this backend is on GPU %d",
                    static_cast<const void *>(handle), of.ordinal, device_->ordinal);
    }
    out         = &used_[handle];
    out->module = std::move(module);
    return GGML_EXT_STATUS_SUCCESS;
}

int cuda_launcher::find(used_module & m, const char * name, const cuda::function *& out) {
    if (name == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: params->function is NULL");
    }
    const auto known = m.functions.find(std::string_view(name));
    if (known != m.functions.end()) {
        out = known->second;
        return GGML_EXT_STATUS_SUCCESS;
    }
    const int status = m.module->code->find(name, out);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        m.functions.emplace(name, out);
    }
    return status;
}

int cuda_launcher::launch(cuda::CUstream stream, const ggml_ext_cuda_launch_params & params) {
    used_module *          m      = nullptr;
    const cuda::function * f      = nullptr;
    int                    status = find(params.module, m);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = find(*m, params.function, f);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check_args(params, *f);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check_shape(params, *f);
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check_flags(params);
    }
    if (status == GGML_EXT_STATUS_SUCCESS && params.shared_memory > f->dynamic_shared_memory_allowed.load(std::memory_order_acquire)) {
        status = m->module->code->allow_shared_memory(*f, params.shared_memory);
    }
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const cuda::driver & cu   = *device_->cu;
    auto * const         args = const_cast<void **>(params.args);
    if ((params.flags & GGML_EXT_CUDA_LAUNCH_EARLY) != 0 && f->may_begin_early) {
        cuda::CUlaunchAttribute    early{cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 0, {1}};
        const cuda::CUlaunchConfig config{params.grid[0], params.grid[1], params.grid[2], params.block[0],
                                          params.block[1], params.block[2], params.shared_memory, stream, &early, 1};
        return cuda::check(cu, cu.cuLaunchKernelEx(&config, f->handle, args, nullptr), "cuLaunchKernelEx");
    }
    return cuda::check(cu,
                       cu.cuLaunchKernel(f->handle, params.grid[0], params.grid[1], params.grid[2], params.block[0], params.block[1],
                                         params.block[2], params.shared_memory, stream, args, nullptr),
                       "cuLaunchKernel");
}

} // namespace ggml_ext::exec
