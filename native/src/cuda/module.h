#pragma once
// Device code that the driver has loaded: kernels found by name, with what a launch must know of them.

#include "cuda/device.h"

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ggml_ext::cuda {

struct function {
    CUfunction          handle = nullptr;
    std::vector<size_t> param_sizes;
    int                 max_threads_per_block       = 0;
    int                 n_registers                 = 0;
    size_t              static_shared_memory        = 0;
    size_t              local_memory                = 0;
    size_t              dynamic_shared_memory_limit = 0; // on this device, per block
    bool                may_begin_early             = false; // compiled for what can wait for the kernel in front by itself

    // what the driver allows now; raised by module::allow_shared_memory
    mutable std::atomic<size_t> dynamic_shared_memory_allowed{0};
};

class module {
public:
    // `image` has passed check_image; a status
    static int load(std::shared_ptr<const device> device, const std::string & image, std::unique_ptr<module> & out);
    ~module();
    module(const module &)             = delete;
    module & operator=(const module &) = delete;

    const cuda::device & device() const { return *device_; }

    // The kernel of that name; it stays where it is as long as the module. A status: NOT_FOUND where there is none.
    int find(const std::string & name, const function *& out) const;

    // A status; INVALID_ARGUMENT where the device has not that much for one block.
    int allow_shared_memory(const function & f, size_t bytes) const;

private:
    module(std::shared_ptr<const cuda::device> device, CUmodule handle) :device_(std::move(device)), handle_(handle) {}
    int describe(const std::string & name, function & out) const;

    std::shared_ptr<const cuda::device>     device_;
    CUmodule                                handle_;
    mutable std::mutex                      mutex_;
    mutable std::map<std::string, function> functions_; // those that were asked for
};

} // namespace ggml_ext::cuda
