#include "registry/registry.h"

#include "support/status.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace ggml_ext {

kernel::~kernel() {
    if (desc.release != nullptr) {
        desc.release(desc.user_data);
    }
}

namespace {

bool valid_name(const char * name) {
    const size_t length  = std::strlen(name);
    const auto   allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; };
    return length > 0 && length < GGML_EXT_MAX_NAME && std::all_of(name, name + length, allowed);
}

int check_name(const char * what, const char * name) {
    if (name == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "%s name is NULL", what);
    }
    if (!valid_name(name)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT,
                    "%s name \"%.160s\" is not valid: expected 1 to %d letters, digits, '.', '_' or '-'", what, name,
                    GGML_EXT_MAX_NAME - 1);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

bool disabled_by_environment(const std::string & name) {
    std::string variable = "GGML_EXT_DISABLE_";
    for (const unsigned char c : name) {
        variable += std::isalnum(c) != 0 ? static_cast<char>(std::toupper(c)) : '_';
    }
    const char * value = std::getenv(variable.c_str());
    return value != nullptr && std::strcmp(value, "0") != 0;
}

} // namespace

void registration_log::make_room() {
    for (registration_log * l = innermost; l != nullptr; l = l->outer_) {
        l->registrations_.reserve(l->registrations_.size() + 1);
    }
}

void registration_log::add(ggml_ext_registration * registration) {
    for (registration_log * l = innermost; l != nullptr; l = l->outer_) {
        l->registrations_.push_back(registration);
    }
}

void registration_log::remove(ggml_ext_registration * registration) {
    for (registration_log * l = innermost; l != nullptr; l = l->outer_) {
        auto & all = l->registrations_;
        all.erase(std::remove(all.begin(), all.end(), registration), all.end());
    }
}

registration_log::registration_log() : outer_(innermost) {
    innermost = this;
}

registration_log::~registration_log() {
    innermost = outer_;
}

int registry::register_op(const ggml_ext_op_desc & desc, ggml_ext_registration ** out) {
    if (const int status = check_name("operator", desc.name); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (std::strchr(desc.name, '.') == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator name \"%s\" has no '.': expected a versioned name such as \"app.%s.v1\"",
                    desc.name, desc.name);
    }
    if (desc.attrs_size > GGML_EXT_MAX_ATTR_SIZE) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s has %zu bytes of attributes, expected at most %d", desc.name,
                    desc.attrs_size, GGML_EXT_MAX_ATTR_SIZE);
    }
    if (desc.infer == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s has no infer callback", desc.name);
    }

    std::lock_guard<std::mutex> lock(mutex_);
    if (ops_.count(desc.name) != 0) {
        return fail(GGML_EXT_STATUS_DUPLICATE, "operator %s is registered already", desc.name);
    }
    auto handle         = std::make_unique<ggml_ext_registration>();
    auto op             = std::make_unique<op_registration>();
    op->name            = desc.name;
    op->attrs_size      = desc.attrs_size;
    op->infer           = desc.infer;
    op->data            = std::make_shared<op_data>();
    op->data->user_data = desc.user_data;
    handle->op          = op.get();
    all_ops_.push_back(std::move(op));
    handles_.insert(handle.get());
    try {
        registration_log::make_room();
        ops_.emplace(handle->op->name, handle->op);
    } catch (...) {
        handles_.erase(handle.get());
        throw;
    }
    handle->op->data->release = desc.release; // the caller's until nothing can fail any more
    registration_log::add(handle.get());
    if (out != nullptr) {
        *out = handle.get();
    }
    handle.release();
    return GGML_EXT_STATUS_SUCCESS;
}

int registry::register_kernel(const abi::ggml & g, ggml_backend_device * device, snapshot_cell & cell,
                              const ggml_ext_kernel_desc & desc, uint32_t flags, ggml_ext_registration ** out) {
    if (const int status = check_name("kernel", desc.name); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const bool computes = desc.supports != nullptr || desc.match != nullptr;
    if (!computes && desc.optimize == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "kernel %s has none of supports, match and optimize", desc.name);
    }
    if (computes && (desc.run == nullptr) == (desc.execute == nullptr)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "kernel %s has %s, expected exactly one of run and execute", desc.name,
                    desc.run == nullptr ? "neither run nor execute" : "both run and execute");
    }
    if (desc.op == nullptr && desc.supports != nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "kernel %s has supports but names no op", desc.name);
    }
    constexpr uint32_t known_flags =
        GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE | GGML_EXT_KERNEL_OVERLAP_SAFE;
    if ((flags & ~known_flags) != 0) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "kernel %s has unknown flags 0x%x", desc.name, flags & ~known_flags);
    }
    if ((flags & GGML_EXT_KERNEL_REPLAY_REUSABLE) != 0 && (flags & GGML_EXT_KERNEL_CAPTURE_SAFE) == 0) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "kernel %s is flagged REPLAY_REUSABLE, which needs CAPTURE_SAFE", desc.name);
    }

    std::lock_guard<std::mutex> lock(mutex_);
    auto &                      of_device = kernels_[device];
    for (const auto & other : of_device) {
        if (other->name == desc.name) {
            return fail(GGML_EXT_STATUS_DUPLICATE, "kernel %s is registered already on device %s", desc.name,
                        g.fn.ggml_backend_dev_name(device));
        }
    }
    const op_registration * op    = nullptr;
    int32_t                 op_id = -1;
    if (desc.op != nullptr) {
        const auto found = ops_.find(desc.op);
        op               = found == ops_.end() ? nullptr : found->second;
        op_id            = op != nullptr ? -1 : g.find_op(desc.op);
        if (op == nullptr && op_id < 0) {
            return fail(GGML_EXT_STATUS_NOT_FOUND,
                        "kernel %s: \"%s\" is neither an operation of this ggml nor a registered operator (activations are functions of UNARY, "
                        "gated ones of GLU)",
                        desc.name, desc.op);
        }
    }

    auto k  = std::make_shared<kernel>();
    k->name = desc.name;
    std::memcpy(&k->desc, &desc, std::min(desc.struct_size, sizeof(k->desc)));
    k->desc.release = nullptr; // the caller's until nothing can fail any more
    k->op_name      = desc.op == nullptr ? "" : desc.op;
    k->desc.name    = k->name.c_str();
    k->desc.op      = desc.op == nullptr ? nullptr : k->op_name.c_str();
    k->flags        = flags;
    k->device       = device;
    k->cell         = &cell;
    k->op_id        = op_id;
    k->op           = op;
    k->order        = ++order_;
    k->env_disabled = disabled_by_environment(k->name);

    auto handle    = std::make_unique<ggml_ext_registration>();
    handle->kernel = k;
    of_device.push_back(k);
    try {
        registration_log::make_room();
        handles_.insert(handle.get());
        publish(device, cell);
    } catch (...) {
        of_device.pop_back();
        handles_.erase(handle.get());
        throw;
    }
    k->desc.release = desc.release;
    registration_log::add(handle.get());
    if (out != nullptr) {
        *out = handle.get();
    }
    handle.release();
    return GGML_EXT_STATUS_SUCCESS;
}

int registry::unregister(ggml_ext_registration * const * registrations, size_t n) {
    // these go last, kernels before operators: release callbacks run without the lock
    std::vector<std::shared_ptr<op_data>>               data;
    std::vector<std::unique_ptr<ggml_ext_registration>> gone;
    std::vector<const snapshot_cell *>                  cells;
    {
        std::lock_guard<std::mutex>        lock(mutex_);
        std::unordered_set<const kernel *> kernels;
        for (size_t i = 0; i < n; ++i) {
            if (handles_.count(registrations[i]) == 0) {
                return fail(GGML_EXT_STATUS_NOT_FOUND, "registration %p is not (or no longer) registered",
                            static_cast<void *>(registrations[i]));
            }
            const kernel_ptr & k = registrations[i]->kernel;
            if (k == nullptr) {
                continue;
            }
            if (const int steps = k->n_plan_steps.load(); steps > 0) {
                return fail(GGML_EXT_STATUS_IN_USE,
                            "kernel %s is in %d step(s) of plans of live backends: close the schedulers and backends that used it first",
                            k->name.c_str(), steps);
            }
            kernels.insert(k.get());
        }
        for (size_t i = 0; i < n; ++i) {
            const op_registration * op = registrations[i]->op;
            for (const auto & [device, of_device] : kernels_) {
                for (const auto & k : of_device) {
                    if (op != nullptr && k->op == op && kernels.count(k.get()) == 0) {
                        return fail(GGML_EXT_STATUS_IN_USE, "operator %s has kernel %s: withdraw that first", op->name.c_str(),
                                    k->name.c_str());
                    }
                }
            }
        }
        // nothing is refused from here on
        std::unordered_map<ggml_backend_device *, snapshot_cell *> changed;
        for (size_t i = 0; i < n; ++i) {
            if (handles_.erase(registrations[i]) == 0) {
                continue; // named twice
            }
            registration_log::remove(registrations[i]);
            gone.emplace_back(registrations[i]);
            if (op_registration * op = registrations[i]->op; op != nullptr) {
                ops_.erase(op->name);
                data.push_back(std::move(op->data));
            } else {
                const kernel_ptr & k         = registrations[i]->kernel;
                auto &             of_device = kernels_[k->device];
                of_device.erase(std::find(of_device.begin(), of_device.end(), k));
                changed[k->device] = k->cell;
            }
        }
        for (const auto & [device, cell] : changed) {
            publish(device, *cell);
            cells.push_back(cell);
        }
    }
    for (const snapshot_cell * cell : cells) {
        cell->collect();
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int registry::set_enabled(ggml_ext_registration * registration, bool enabled) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (handles_.count(registration) == 0) {
        return fail(GGML_EXT_STATUS_NOT_FOUND, "registration %p is not (or no longer) registered", static_cast<void *>(registration));
    }
    if (registration->kernel == nullptr) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s cannot be switched off: switch its kernels off",
                    registration->op->name.c_str());
    }
    const kernel_ptr k = registration->kernel;
    k->enabled.store(enabled);
    publish(k->device, *k->cell); // a new epoch: plans are made anew
    lock.unlock();
    k->cell->collect();
    return GGML_EXT_STATUS_SUCCESS;
}

kernel_ptr registry::find_kernel(const ggml_ext_registration * registration) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return handles_.count(const_cast<ggml_ext_registration *>(registration)) == 0 ? nullptr : registration->kernel;
}

const char * registry::name_of(const ggml_ext_registration * registration) const {
    std::lock_guard<std::mutex> lock(mutex_);
    if (handles_.count(const_cast<ggml_ext_registration *>(registration)) == 0) {
        return nullptr;
    }
    return registration->op != nullptr ? registration->op->name.c_str() : registration->kernel->name.c_str();
}

op_use registry::find_op(const std::string & name) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto                  found = ops_.find(name);
    return found == ops_.end() ? op_use{} : op_use{found->second, found->second->data};
}

size_t registry::n_kernels(const ggml_backend_device * device) const {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto                  found = kernels_.find(const_cast<ggml_backend_device *>(device));
    return found == kernels_.end() ? 0 : found->second.size();
}

void registry::publish(ggml_backend_device * device, snapshot_cell & cell) {
    auto next   = std::make_unique<snapshot>();
    next->epoch = ++epoch_;
    next->all   = kernels_[device];
    std::stable_sort(next->all.begin(), next->all.end(),
                     [](const kernel_ptr & a, const kernel_ptr & b) { return a->desc.priority > b->desc.priority; });
    for (const auto & k : next->all) {
        if (k->desc.supports != nullptr) {
            if (k->op != nullptr) {
                next->single_custom[k->op].push_back(k);
            } else {
                if (next->single_builtin.size() <= static_cast<size_t>(k->op_id)) {
                    next->single_builtin.resize(k->op_id + 1);
                }
                next->single_builtin[k->op_id].push_back(k);
            }
        }
        if (k->desc.match != nullptr) {
            next->rules.push_back(k);
        }
        if (k->desc.optimize != nullptr) {
            next->optimizers.push_back(k);
        }
    }
    cell.store(std::move(next));
}

} // namespace ggml_ext
