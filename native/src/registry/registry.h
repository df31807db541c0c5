#pragma once
// Operators and kernels: what is registered, and the immutable snapshots that queries and planning read.

#include "ggml-ext.h"

#include "abi/ggml.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ggml_ext {

// The caller's data of an operator. Released when the operator is withdrawn and no infer callback runs any more.
struct op_data {
    void * user_data        = nullptr;
    void (*release)(void *) = nullptr;

    ~op_data() {
        if (release != nullptr) {
            release(user_data);
        }
    }
};

// Never freed: nodes of graphs point to it for as long as they live (OP-3).
struct op_registration {
    std::string              name;
    size_t                   attrs_size = 0;
    ggml_ext_infer           infer      = nullptr;
    std::shared_ptr<op_data> data; // under the registry's lock; NULL: withdrawn
};

// an operator that is about to be asked; it may be withdrawn meanwhile, and its data stays
struct op_use {
    const op_registration *  op = nullptr;
    std::shared_ptr<op_data> data;
};

class snapshot_cell;

struct kernel_counters {
    std::atomic<uint64_t> supported{0}, unsupported{0}, planned{0}, executed{0}, failed{0}, refused{0}, time_ns{0}, timed{0};
};

struct kernel {
    std::string             name;
    std::string             op_name; // "" for a rule whose matches may begin anywhere
    ggml_ext_kernel_desc    desc{};  // name and op point into the strings above
    uint32_t                flags        = 0;
    ggml_backend_device *   device       = nullptr;
    snapshot_cell *         cell         = nullptr; // of the device
    int32_t                 op_id        = -1;      // of a built-in op
    const op_registration * op           = nullptr; // of a registered one
    uint64_t                order        = 0;       // of registration
    bool                    env_disabled = false;
    std::atomic<bool>       enabled{true};
    std::atomic<bool>       wants_workspace{false}; // asked for some once: keeps its place in the allocator (see plan/inject.h)
    std::atomic<int>        n_plan_steps{0};        // steps of live plans
    mutable kernel_counters counters;

    ~kernel();
    bool active() const { return enabled.load(std::memory_order_relaxed) && !env_disabled; }
};

using kernel_ptr = std::shared_ptr<kernel>;

// What one device has, in the order of asking: priority, then registration.
struct snapshot {
    uint64_t                                                             epoch = 0;
    std::vector<kernel_ptr>                                              all;
    std::vector<std::vector<kernel_ptr>>                                 single_builtin; // by op id
    std::unordered_map<const op_registration *, std::vector<kernel_ptr>> single_custom;
    std::vector<kernel_ptr>                                              rules;
    std::vector<kernel_ptr>                                              optimizers;

    bool empty() const { return all.empty(); }
    bool serves(int32_t op_id) const { // single nodes of that built-in op
        return op_id >= 0 && static_cast<size_t>(op_id) < single_builtin.size() && !single_builtin[op_id].empty();
    }
    const std::vector<kernel_ptr> & singles(int32_t op_id, const op_registration * op) const;
};

// The snapshot of one device. Readers never block: they pin the current one by a counter; writers retire the old one and
// free it once no reader is left.
class snapshot_cell {
public:
    class pin {
    public:
        explicit pin(const snapshot_cell & cell);
        ~pin();
        pin(const pin &)                        = delete;
        pin &            operator=(const pin &) = delete;
        const snapshot * operator->() const { return snapshot_; }
        const snapshot & operator*() const { return *snapshot_; }

    private:
        const snapshot_cell & cell_;
        const snapshot *      snapshot_;
    };

    ~snapshot_cell();
    void store(std::unique_ptr<const snapshot> next);
    // Frees what no reader can hold any more. May call release callbacks: not under a lock.
    void collect() const;
    bool empty() const { return empty_.load(std::memory_order_relaxed); }
    // Is there a single-node kernel for that built-in op? Without a pin: queries come for every node of every graph.
    bool offers(int32_t op_id) const {
        const auto id = static_cast<uint32_t>(op_id);
        return id >= MAX_OPS || (offered_[id / 64].load(std::memory_order_relaxed) >> (id % 64) & 1) != 0;
    }

private:
    static constexpr uint32_t MAX_OPS = 512; // beyond: perhaps

    mutable std::atomic<int>                             readers_{0};
    std::atomic<const snapshot *>                        current_{nullptr};
    std::atomic<bool>                                    empty_{true};
    std::array<std::atomic<uint64_t>, MAX_OPS / 64>      offered_{}; // a bit for each op
    mutable std::atomic<bool>                            has_retired_{false};
    mutable std::mutex                                   mutex_;
    mutable std::vector<std::unique_ptr<const snapshot>> retired_;
};

} // namespace ggml_ext

struct ggml_ext_registration {
    ggml_ext::op_registration * op = nullptr; // one of the two
    ggml_ext::kernel_ptr        kernel;
};

namespace ggml_ext {

// Keeps what its thread registers while it lives, but for what that thread withdraws again.
class registration_log {
public:
    registration_log();
    ~registration_log();
    registration_log(const registration_log &)             = delete;
    registration_log & operator=(const registration_log &) = delete;

    const std::vector<ggml_ext_registration *> & registrations() const { return registrations_; }

    // for the registry: into all logs of this thread; room first, so that adding cannot fail
    static void make_room();
    static void add(ggml_ext_registration * registration);
    static void remove(ggml_ext_registration * registration);

private:
    static inline thread_local registration_log * innermost = nullptr;

    registration_log *                   outer_;
    std::vector<ggml_ext_registration *> registrations_;
};

class registry {
public:
    int register_op(const ggml_ext_op_desc & desc, ggml_ext_registration ** out);
    // the caller collects the cell afterwards, where it holds no lock
    int register_kernel(const abi::ggml & g, ggml_backend_device * device, snapshot_cell & cell,
                        const ggml_ext_kernel_desc & desc, uint32_t flags, ggml_ext_registration ** out);
    // all or none
    int unregister(ggml_ext_registration * const * registrations, size_t n);
    int set_enabled(ggml_ext_registration * registration, bool enabled);

    // NULL where the handle is not a live one
    kernel_ptr   find_kernel(const ggml_ext_registration * registration) const;
    const char * name_of(const ggml_ext_registration * registration) const;
    op_use       find_op(const std::string & name) const;
    size_t       n_kernels(const ggml_backend_device * device) const;

private:
    void publish(ggml_backend_device * device, snapshot_cell & cell);

    mutable std::mutex                                                 mutex_;
    std::vector<std::unique_ptr<op_registration>>                      all_ops_; // withdrawn ones too
    std::unordered_map<std::string, op_registration *>                 ops_;
    std::unordered_map<ggml_backend_device *, std::vector<kernel_ptr>> kernels_;
    std::unordered_set<ggml_ext_registration *>                        handles_;
    uint64_t                                                           order_ = 0;
    uint64_t                                                           epoch_ = 0;
};

} // namespace ggml_ext
