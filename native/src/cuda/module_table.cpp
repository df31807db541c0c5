#include "cuda/module_table.h"

#include "cuda/image.h"
#include "support/status.h"

namespace ggml_ext::cuda {

namespace {

int no_such(const ggml_ext_cuda_module * handle) {
    return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: module %p is none, or was freed", static_cast<const void *>(handle));
}

} // namespace

int module_table::add(std::shared_ptr<const device> device, const std::string & image, ggml_ext_cuda_module *& out) {
    std::unique_ptr<module> loaded;
    if (const int status = module::load(std::move(device), image, loaded); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    auto                              made = std::make_shared<ggml_ext_cuda_module>(std::move(loaded));
    const std::lock_guard<std::mutex> lock(mutex_);
    modules_.emplace(made.get(), made);
    out = made.get();
    return GGML_EXT_STATUS_SUCCESS;
}

int module_table::compile(std::shared_ptr<const device> device, const source & s, ggml_ext_cuda_module *& out) {
    std::shared_ptr<const nvrtc> compiler;
    {
        const std::lock_guard<std::mutex> lock(nvrtc_mutex_);
        if (nvrtc_ == nullptr) {
            if (const int status = open_nvrtc(nvrtc_names(device->cu->version), nvrtc_); status != GGML_EXT_STATUS_SUCCESS) {
                return status;
            }
        }
        compiler = nvrtc_;
    }
    std::string image;
    const int   status = cuda::compile(*compiler, s, device->major, device->minor, image);
    return status == GGML_EXT_STATUS_SUCCESS ? add(std::move(device), image, out) : status;
}

int module_table::load(std::shared_ptr<const device> device, const void * image, size_t size, ggml_ext_cuda_module *& out) {
    const int status = check_image(image, size);
    return status == GGML_EXT_STATUS_SUCCESS ? add(std::move(device), std::string(static_cast<const char *>(image), size), out) : status;
}

int module_table::free(ggml_ext_cuda_module * handle) {
    module_ptr last; // perhaps; unloaded outside the lock
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto                        found = modules_.find(handle);
        if (found == modules_.end()) {
            return no_such(handle);
        }
        last = std::move(found->second);
        modules_.erase(found);
    }
    last->freed.store(true, std::memory_order_release);
    return GGML_EXT_STATUS_SUCCESS;
}

int module_table::find(const ggml_ext_cuda_module * handle, module_ptr & out) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto                        found = modules_.find(handle);
    if (found == modules_.end()) {
        return no_such(handle);
    }
    out = found->second;
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace ggml_ext::cuda
