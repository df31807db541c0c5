// OP-3: a CPU backend that the layer does not run calls the marker as if it were a custom operation's function.

#include "exec/marker.h"

#include "exec/executor.h"
#include "exec/runtime.h"
#include "interpose/hooks.h"
#include "plan/select.h"
#include "support/status.h"

#include <cmath>
#include <cstring>

namespace ggml_ext {

namespace {

std::atomic<uint64_t> failures{0};

template <typename T> void fill(ggml_tensor * dst, T value) {
    const size_t n = static_cast<size_t>(dst->ne[0] * dst->ne[1] * dst->ne[2] * dst->ne[3]); // operators' outputs are contiguous
    std::fill_n(static_cast<T *>(dst->data), n, value);
}

// NaN where the type has one, all bits set elsewhere
void fill_with_nan(const abi::ggml & g, ggml_tensor * dst) {
    constexpr int32_t F16 = 1, F64 = 28, BF16 = 30;
    switch (dst->type) {
        case TYPE_F32: fill(dst, std::nanf("")); break;
        case F64:      fill(dst, std::nan("")); break;
        case F16:      fill<uint16_t>(dst, 0x7e00); break;
        case BF16:     fill<uint16_t>(dst, 0x7fc0); break;
        default:       std::memset(dst->data, 0xff, g.fn.ggml_nbytes(dst));
    }
}

int run_on_this_thread(const abi::ggml & g, ggml_tensor * dst, const op_registration & op) {
    const attached_device * cpu = runtime::get().find_cpu();
    if (cpu == nullptr) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "OP-3: operator %s: no CPU device is attached", op.name.c_str());
    }
    const snapshot_cell::pin kernels(cpu->kernels);
    plan::refusal_list       refusals;
    const kernel_ptr         k = plan::select_kernel(*cpu, *kernels, dst, 0, &refusals).k;
    if (k == nullptr) {
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "OP-3: operator %s has no CPU kernel for this node%s%s", op.name.c_str(),
                    refusals.empty() ? "" : ": ", refusals.latest().c_str());
    }
    const node_view       view(g, dst);
    const ggml_ext_node * nodes[] = {&view.get()};
    plan::step            s;
    s.k = k;
    k->n_plan_steps.fetch_add(1);
    s.prepared.struct_size = sizeof(s.prepared);
    s.prepared.n_phases    = 1;
    if (k->desc.prepare != nullptr) {
        const ggml_ext_prepare_params params{sizeof(params), nullptr, 1, nodes};
        set_last_error("");
        if (const int status = k->desc.prepare(&params, &s.prepared, k->desc.user_data); status != GGML_EXT_STATUS_SUCCESS) {
            s.prepared.state = nullptr;
            return fail(status, "kernel %s: prepare failed: %s", k->name.c_str(), std::string(reason_or_name(status)).c_str());
        }
        if (const int status = plan::check_prepared(s.prepared); status != GGML_EXT_STATUS_SUCCESS) {
            return fail(status, "kernel %s: prepare failed: %s", k->name.c_str(), std::string(last_error()).c_str());
        }
    }
    if (s.prepared.workspace_size > PTRDIFF_MAX - 128) {
        return fail(GGML_EXT_STATUS_NO_MEMORY, "KERNEL-4: no memory for %zu bytes of workspace of kernel %s", s.prepared.workspace_size,
                    k->name.c_str());
    }
    std::vector<char> workspace(s.prepared.workspace_size + 128);
    const auto        base = (reinterpret_cast<uintptr_t>(workspace.data()) + 127) & ~uintptr_t{127};
    s.exec                 = {sizeof(s.exec), nullptr, s.prepared.state, 1, nodes, reinterpret_cast<void *>(base), s.prepared.workspace_size};
    exec::failure f;
    if (const int status = exec::run_step(s, f); status != GGML_EXT_STATUS_SUCCESS) {
        f.result(); // its message names the kernel
        return status;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

uint64_t marker_failures() {
    return failures.load(std::memory_order_acquire);
}

void hooks::marker(ggml_tensor * dst, int ith, int /* nth */, void * userdata) {
    if (ith != 0) {
        return;
    }
    const abi::ggml & g  = runtime::get().ggml();
    const auto &      op = *static_cast<const op_registration *>(userdata);
    set_last_error("");
    const int status = guarded([&]() -> int { return run_on_this_thread(g, dst, op); });
    if (status != GGML_EXT_STATUS_SUCCESS) {
        log(GGML_EXT_LOG_LEVEL_ERROR, "%s; the output is filled with NaN", last_error());
        fill_with_nan(g, dst);
        failures.fetch_add(1, std::memory_order_release);
        return;
    }
    static std::atomic<bool> told{false};
    if (!told.exchange(true)) {
        log(GGML_EXT_LOG_LEVEL_WARN,
            "operator %s ran on one thread of a CPU backend that is not attached; attach the device before the backend is made, or "
            "call ggml_ext_attach_backend (said once)",
            op.name.c_str());
    }
}

} // namespace ggml_ext
