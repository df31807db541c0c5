#pragma once
// The one global of the library: the loaded ggml, the registry, and what is attached.

#include "cuda/module_table.h"
#include "interpose/device.h"
#include "registry/weight_changes.h"

#include <array>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

namespace ggml_ext {

struct patched_registry {
    struct ggml_backend_reg * reg                     = nullptr;
    proc_address_fn           native_get_proc_address = nullptr; // may be NULL
    int                       n_devices               = 0;
};

class runtime {
public:
    static runtime & get();
    ~runtime();

    int  load(const ggml_ext_load_params & params);
    bool is_loaded() const { return loaded_.load(std::memory_order_acquire); }
    int  check_loaded() const; // a status, with the message for callers

    const abi::ggml &    ggml() const { return ggml_; }
    registry &           registrations() { return registry_; }
    cuda::module_table & modules() { return modules_; }
    weight_changes &     changes() { return changes_; }

    int attach(ggml_backend_device * device);
    int detach(ggml_backend_device * device);
    int attach(ggml_backend * backend);
    int register_kernel(ggml_backend_device * device, const ggml_ext_kernel_desc & desc, uint32_t flags, ggml_ext_registration ** out);

    // NULL where it is not attached. An attached device stays in memory for good; a backend until it is freed.
    static attached_device *          find(const ggml_backend_device * device);
    std::shared_ptr<attached_backend> find(const ggml_backend * backend) const;
    attached_device *                 find_cpu() const;
    bool                              is_attached(const ggml_backend_device * device) const;
    const patched_registry *          find(const struct ggml_backend_reg * reg) const;

    // called by the hook, before the backend's own free
    std::shared_ptr<attached_backend> remove(ggml_backend * backend);

private:
    runtime();
    int attach_backend_locked(attached_device & device, ggml_backend * backend);

    std::mutex                                    load_mutex_;
    std::atomic<bool>                             loaded_{false};
    abi::ggml                                     ggml_;
    std::unique_ptr<const plan::op_table>         ops_;
    registry                                      registry_;
    cuda::module_table                            modules_;
    weight_changes                                changes_;
    mutable std::shared_mutex                     mutex_;
    std::vector<std::unique_ptr<attached_device>> devices_; // live ones
    std::vector<std::unique_ptr<attached_device>> detached_; // kept: queries may still be inside

    // For find: support queries come for every node of every graph, so they take no lock, and need no look whether the runtime is
    // made. One entry a device, its latest attachment.
    static constexpr size_t                                                     MAX_DEVICES = 64;
    static inline std::array<std::atomic<attached_device *>, MAX_DEVICES>       latest_{};
    static inline std::atomic<size_t>                                           n_latest_{0};
    std::vector<std::unique_ptr<patched_registry>>                              registries_;
    std::unordered_map<const ggml_backend *, std::shared_ptr<attached_backend>> backends_;
};

inline attached_device * runtime::find(const ggml_backend_device * device) {
    // a detached one too: for calls that were on their way when it was detached
    const size_t n = n_latest_.load(std::memory_order_acquire);
    for (size_t i = 0; i < n; ++i) {
        attached_device * attached = latest_[i].load(std::memory_order_acquire);
        if (attached->device == device) {
            return attached;
        }
    }
    return nullptr;
}

} // namespace ggml_ext
