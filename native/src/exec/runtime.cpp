#include "exec/runtime.h"

#include "exec/executor.h"
#include "interpose/hooks.h"
#include "plan/backend_plans.h"
#include "plan/effects.h"
#include "support/status.h"

#include <algorithm>

namespace ggml_ext {

attached_backend::attached_backend()  = default;
attached_backend::~attached_backend() = default;

bool attached_device::native_supports(const ggml_tensor * op) const {
    return operator_of(*ggml, op) == nullptr && native_supports_op(device, op);
}

runtime::runtime()  = default;
runtime::~runtime() = default;

runtime & runtime::get() {
    static runtime * instance = new runtime(); // outlives static destruction: ggml's tables point into us
    return *instance;
}

int runtime::load(const ggml_ext_load_params & params) {
    std::lock_guard<std::mutex> lock(load_mutex_);
    std::string                 error;
    abi::ggml                   found;
    if (const int status = abi::load(params, found, error); status != GGML_EXT_STATUS_SUCCESS) {
        return fail(status, "%s", error.c_str());
    }
    if (loaded_.load()) {
        return found.fn.ggml_init == ggml_.fn.ggml_init
                   ? GGML_EXT_STATUS_SUCCESS
                   : fail(GGML_EXT_STATUS_INCOMPATIBLE, "ggml of %s is loaded already, not %s: one ggml a process", ggml_.base_path.c_str(),
                          found.base_path.c_str());
    }
    ggml_ = std::move(found);
    set_marker(hooks::marker);
    ops_ = std::make_unique<plan::op_table>(ggml_, reinterpret_cast<const void *>(hooks::marker));
    loaded_.store(true, std::memory_order_release);
    return GGML_EXT_STATUS_SUCCESS;
}

int runtime::check_loaded() const {
    return is_loaded() ? GGML_EXT_STATUS_SUCCESS : fail(GGML_EXT_STATUS_NOT_LOADED, "ggml is not loaded: call ggml_ext_load first");
}

int runtime::attach(ggml_backend_device * device) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto                          same = [device](const auto & d) { return d->device == device; };
    if (std::any_of(devices_.begin(), devices_.end(), same)) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    auto attached    = std::make_unique<attached_device>();
    attached->ggml   = &ggml_;
    attached->ops    = ops_.get();
    attached->device = device;
    attached->reg    = ggml_.fn.ggml_backend_dev_backend_reg(device);
    attached->is_cpu = ggml_.fn.ggml_backend_dev_type(device) == 0; // GGML_BACKEND_DEVICE_TYPE_CPU

    if (!attached->is_cpu && !ggml_.graph_optimize_probed) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED,
                    "device %s: attach the CPU device first: its backend proves the position of graph_optimize",
                    ggml_.fn.ggml_backend_dev_name(device));
    }
    if (attached->is_cpu && !ggml_.graph_optimize_probed) {
        if (ggml_backend * probe = ggml_.fn.ggml_backend_dev_init(device, nullptr)) {
            abi::probe_graph_optimize(ggml_, device, probe);
            ggml_.fn.ggml_backend_free(probe);
        }
    }

    if (cuda::is_cuda(ggml_, attached->reg)) {
        attached->cuda = cuda::open_device(ggml_, device, abi::slot_of(device, ggml_.slot.dev_supports_op));
        if (attached->cuda == nullptr) {
            const std::string reason = last_error();
            return fail(GGML_EXT_STATUS_UNSUPPORTED, "device %s: %s", ggml_.fn.ggml_backend_dev_name(device), reason.c_str());
        }
    }

    void *& supports              = abi::slot_of(device, ggml_.slot.dev_supports_op);
    void *& init                  = abi::slot_of(device, ggml_.slot.dev_init_backend);
    attached->native_supports_op  = reinterpret_cast<supports_op_fn>(supports);
    attached->native_init_backend = reinterpret_cast<init_backend_fn>(init);
    if (attached->native_supports_op == nullptr || attached->native_init_backend == nullptr) {
        return fail(GGML_EXT_STATUS_INCOMPATIBLE, "device %s has no supports_op or no init_backend", ggml_.fn.ggml_backend_dev_name(device));
    }

    auto of_reg = std::find_if(registries_.begin(), registries_.end(), [&](const auto & r) { return r->reg == attached->reg; });
    if (of_reg == registries_.end()) {
        registries_.push_back(std::make_unique<patched_registry>());
        of_reg         = std::prev(registries_.end());
        (*of_reg)->reg = attached->reg;
    }
    patched_registry & reg   = **of_reg;
    size_t             entry = 0;
    while (entry < n_latest_.load() && latest_[entry].load()->device != device) {
        ++entry;
    }
    if (entry == MAX_DEVICES) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "device %s: more than %zu devices", ggml_.fn.ggml_backend_dev_name(device), MAX_DEVICES);
    }
    devices_.push_back(std::move(attached));
    latest_[entry].store(devices_.back().get(), std::memory_order_release);
    n_latest_.store(std::max(n_latest_.load(), entry + 1), std::memory_order_release);

    // all that can fail is done: patch
    if (++reg.n_devices == 1) {
        void *& proc                = abi::slot_of(reg.reg, ggml_.slot.reg_get_proc_address);
        reg.native_get_proc_address = reinterpret_cast<proc_address_fn>(proc);
        proc                        = reinterpret_cast<void *>(hooks::get_proc_address);
    }
    supports = reinterpret_cast<void *>(hooks::supports_op);
    init     = reinterpret_cast<void *>(hooks::init_backend);
    return GGML_EXT_STATUS_SUCCESS;
}

int runtime::detach(ggml_backend_device * device) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = std::find_if(devices_.begin(), devices_.end(), [device](const auto & d) { return d->device == device; });
    if (found == devices_.end()) {
        return fail(GGML_EXT_STATUS_NOT_FOUND, "device %p is not attached", static_cast<void *>(device));
    }
    const char * name = ggml_.fn.ggml_backend_dev_name(device);
    if (const size_t kernels = registry_.n_kernels(device); kernels > 0) {
        return fail(GGML_EXT_STATUS_IN_USE, "device %s has %zu registered kernel(s): withdraw them first", name, kernels);
    }
    for (const auto & [backend, attached] : backends_) {
        if (attached->device == found->get()) {
            return fail(GGML_EXT_STATUS_IN_USE, "device %s has a live attached backend: free it first", name);
        }
    }
    abi::slot_of(device, ggml_.slot.dev_supports_op)  = reinterpret_cast<void *>((*found)->native_supports_op);
    abi::slot_of(device, ggml_.slot.dev_init_backend) = reinterpret_cast<void *>((*found)->native_init_backend);
    const auto of_reg                                 = std::find_if(registries_.begin(), registries_.end(), [&](const auto & r) { return r->reg == (*found)->reg; });
    if (--(*of_reg)->n_devices == 0) {
        abi::slot_of((*of_reg)->reg, ggml_.slot.reg_get_proc_address) = reinterpret_cast<void *>((*of_reg)->native_get_proc_address);
    }
    detached_.push_back(std::move(*found));
    devices_.erase(found);
    return GGML_EXT_STATUS_SUCCESS;
}

int runtime::attach(ggml_backend * backend) {
    const ggml_backend_device *         device = ggml_.fn.ggml_backend_get_device(backend);
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = std::find_if(devices_.begin(), devices_.end(), [device](const auto & d) { return d->device == device; });
    if (found == devices_.end()) {
        return fail(GGML_EXT_STATUS_NOT_FOUND, "the device of backend %s is not attached: call ggml_ext_attach_device first",
                    ggml_.fn.ggml_backend_name(backend));
    }
    return attach_backend_locked(**found, backend);
}

int runtime::register_kernel(ggml_backend_device * device, const ggml_ext_kernel_desc & desc, uint32_t flags,
                             ggml_ext_registration ** out) {
    snapshot_cell * cell   = nullptr;
    int             status = GGML_EXT_STATUS_SUCCESS;
    {
        std::shared_lock<std::shared_mutex> lock(mutex_); // the device is not detached meanwhile
        const auto                          found = std::find_if(devices_.begin(), devices_.end(), [device](const auto & d) { return d->device == device; });
        if (found == devices_.end()) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "device %p is not attached: call ggml_ext_attach_device first",
                        static_cast<void *>(device));
        }
        cell   = &(*found)->kernels;
        status = registry_.register_kernel(ggml_, device, *cell, desc, flags, out);
    }
    cell->collect();
    return status;
}

int runtime::attach_backend_locked(attached_device & device, ggml_backend * backend) {
    if (backends_.count(backend) != 0) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    auto attached     = std::make_shared<attached_backend>();
    attached->device  = &device;
    attached->backend = backend;
    attached->plans   = std::make_unique<plan::backend_plans>(device, backend);
    if (const int status = exec::make_executor(device, backend, attached->executor); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }

    void *& compute                = abi::slot_of(backend, ggml_.slot.backend_graph_compute);
    void *& free                   = abi::slot_of(backend, ggml_.slot.backend_free);
    attached->native_graph_compute = reinterpret_cast<graph_compute_fn>(compute);
    attached->native_free          = reinterpret_cast<backend_free_fn>(free);
    if (ggml_.slot.backend_graph_optimize >= 0) {
        void *& optimize                = abi::slot_of(backend, ggml_.slot.backend_graph_optimize);
        attached->native_graph_optimize = reinterpret_cast<graph_optimize_fn>(optimize);
        backends_.emplace(backend, attached);
        optimize = reinterpret_cast<void *>(hooks::graph_optimize);
    } else {
        backends_.emplace(backend, attached);
    }
    compute = reinterpret_cast<void *>(hooks::graph_compute);
    free    = reinterpret_cast<void *>(hooks::backend_free);
    return GGML_EXT_STATUS_SUCCESS;
}

std::shared_ptr<attached_backend> runtime::find(const ggml_backend * backend) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = backends_.find(backend);
    return found == backends_.end() ? nullptr : found->second;
}

attached_device * runtime::find_cpu() const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = std::find_if(devices_.begin(), devices_.end(), [](const auto & d) { return d->is_cpu; });
    return found == devices_.end() ? nullptr : found->get();
}

bool runtime::is_attached(const ggml_backend_device * device) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    return std::any_of(devices_.begin(), devices_.end(), [device](const auto & d) { return d->device == device; });
}

const patched_registry * runtime::find(const struct ggml_backend_reg * reg) const {
    std::shared_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = std::find_if(registries_.begin(), registries_.end(), [reg](const auto & r) { return r->reg == reg; });
    return found == registries_.end() ? nullptr : found->get();
}

std::shared_ptr<attached_backend> runtime::remove(ggml_backend * backend) {
    std::unique_lock<std::shared_mutex> lock(mutex_);
    const auto                          found = backends_.find(backend);
    if (found == backends_.end()) {
        return nullptr;
    }
    std::shared_ptr<attached_backend> attached = found->second;
    backends_.erase(found);
    abi::slot_of(backend, ggml_.slot.backend_graph_compute) = reinterpret_cast<void *>(attached->native_graph_compute);
    abi::slot_of(backend, ggml_.slot.backend_free)          = reinterpret_cast<void *>(attached->native_free);
    if (ggml_.slot.backend_graph_optimize >= 0) {
        abi::slot_of(backend, ggml_.slot.backend_graph_optimize) = reinterpret_cast<void *>(attached->native_graph_optimize);
    }
    return attached;
}

} // namespace ggml_ext
