#include "cuda/module.h"

#include "support/status.h"

#include <algorithm>

namespace ggml_ext::cuda {

namespace {

constexpr int SHARED_MEMORY_AS_IT_COMES = 48 * 1024; // of a block, static and dynamic

} // namespace

int module::load(std::shared_ptr<const cuda::device> device, const std::string & image, std::unique_ptr<module> & out) {
    const driver & cu = *device->cu;
    if (cu.cuFuncGetParamInfo == nullptr) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED,
                    "AOT-1: modules need the driver of CUDA 12.4 or later, which knows the parameters of kernels; this one is of CUDA %d.%d",
                    cu.version / 1000, cu.version % 1000 / 10);
    }
    const device_scope scope(*device);
    if (scope.status() != GGML_EXT_STATUS_SUCCESS) {
        return scope.status();
    }
    std::string  log(16384, '\0'); // of PTX's compiler
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *       values[]  = {log.data(), reinterpret_cast<void *>(log.size())};
    CUmodule     handle    = nullptr;
    const int    status    = check(cu, cu.cuModuleLoadDataEx(&handle, image.c_str(), 2, options, values), "cuModuleLoadDataEx");
    if (status != GGML_EXT_STATUS_SUCCESS) {
        const std::string reason = last_error();
        log.back()               = '\0';
        return fail(status, "AOT-1: the driver does not take the module for this GPU (sm_%d%d): %s%s%s", device->major, device->minor,
                    reason.c_str(), log[0] != '\0' ? "\n" : "", log.c_str());
    }
    out.reset(new module(std::move(device), handle));
    return GGML_EXT_STATUS_SUCCESS;
}

module::~module() {
    const device_scope scope(*device_);
    device_->cu->cuModuleUnload(handle_);
}

int module::describe(const std::string & name, function & out) const {
    const driver &     cu = *device_->cu;
    const device_scope scope(*device_);
    if (scope.status() != GGML_EXT_STATUS_SUCCESS) {
        return scope.status();
    }
    const CUresult found = cu.cuModuleGetFunction(&out.handle, handle_, name.c_str());
    if (found == CUDA_ERROR_NOT_FOUND) {
        return fail(GGML_EXT_STATUS_NOT_FOUND, "AOT-1: the module has no kernel \"%.160s\"; one in C++ is found by its name if it is declared extern \"C\"",
                    name.c_str());
    }
    if (const int status = check(cu, found, ("cuModuleGetFunction(" + name + ")").c_str()); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    for (;;) {
        size_t         offset = 0, size = 0;
        const CUresult result = cu.cuFuncGetParamInfo(out.handle, out.param_sizes.size(), &offset, &size);
        if (result == CUDA_ERROR_INVALID_VALUE) {
            break; // there are no more
        }
        if (const int status = check(cu, result, "cuFuncGetParamInfo"); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
        out.param_sizes.push_back(size);
    }
    int        static_shared = 0, local = 0, dynamic = 0, most = 0, architecture = 0;
    const auto attribute = [&](CUfunction_attribute which, int & value) {
        return check(cu, cu.cuFuncGetAttribute(&value, which, out.handle), "cuFuncGetAttribute") == GGML_EXT_STATUS_SUCCESS;
    };
    if (!attribute(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, out.max_threads_per_block) ||
        !attribute(CU_FUNC_ATTRIBUTE_NUM_REGS, out.n_registers) || !attribute(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, static_shared) ||
        !attribute(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, local) || !attribute(CU_FUNC_ATTRIBUTE_PTX_VERSION, architecture) ||
        !attribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, dynamic)) {
        return GGML_EXT_STATUS_FAILED;
    }
    if (const int status = check(cu, cu.cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device_->ordinal),
                                 "cuDeviceGetAttribute");
        status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    out.may_begin_early               = architecture >= 90 && cu.cuLaunchKernelEx != nullptr;
    out.static_shared_memory          = static_cast<size_t>(static_shared);
    out.local_memory                  = static_cast<size_t>(local);
    out.dynamic_shared_memory_allowed = static_cast<size_t>(std::max(0, std::min(dynamic, SHARED_MEMORY_AS_IT_COMES - static_shared)));
    out.dynamic_shared_memory_limit   = most > static_shared ? static_cast<size_t>(most - static_shared) : 0;
    return GGML_EXT_STATUS_SUCCESS;
}

int module::find(const std::string & name, const function *& out) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto                              found = functions_.find(name);
    if (found == functions_.end()) {
        found = functions_.try_emplace(name).first;
        if (const int status = describe(name, found->second); status != GGML_EXT_STATUS_SUCCESS) {
            functions_.erase(found);
            return status;
        }
    }
    out = &found->second;
    return GGML_EXT_STATUS_SUCCESS;
}

int module::allow_shared_memory(const function & f, size_t bytes) const {
    if (bytes > f.dynamic_shared_memory_limit) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: %zu bytes of dynamic shared memory, but this GPU has at most %zu for a block of this kernel",
                    bytes, f.dynamic_shared_memory_limit);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (bytes <= f.dynamic_shared_memory_allowed.load(std::memory_order_relaxed)) {
        return GGML_EXT_STATUS_SUCCESS; // another thread has raised it
    }
    const int status = check(*device_->cu,
                             device_->cu->cuFuncSetAttribute(f.handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(bytes)),
                             "cuFuncSetAttribute");
    if (status == GGML_EXT_STATUS_SUCCESS) {
        f.dynamic_shared_memory_allowed.store(bytes, std::memory_order_release);
    }
    return status;
}

} // namespace ggml_ext::cuda
