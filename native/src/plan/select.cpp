#include "plan/select.h"

#include "support/status.h"

namespace ggml_ext::plan {

namespace {

// Asks one callback; a failed one counts as a refusal with its message.
bool ask(int32_t (*callback)(const ggml_ext_node *, void *), const kernel & k, const node_view & view, const char * what,
         std::string & reason) {
    set_last_error("");
    const int32_t answer = callback(&view.get(), k.desc.user_data);
    if (answer > 0) {
        return true;
    }
    const char * message = last_error();
    if (answer < 0) {
        k.counters.failed.fetch_add(1, std::memory_order_relaxed);
        reason = format("%s failed (%s): %s", what, ggml_ext_status_name(-answer), message);
        log(GGML_EXT_LOG_LEVEL_ERROR, "kernel %s: %s", k.name.c_str(), reason.c_str());
    } else {
        reason = format("%s: %s", what, *message != '\0' ? message : "no");
    }
    return false;
}

} // namespace

bool interceptable(const abi::ggml & g, const ggml_tensor * node) {
    return node->view_src == nullptr && node->op != g.op.none;
}

selection select_kernel(const attached_device & device, const snapshot & kernels, const ggml_tensor * node, int node_index,
                        std::vector<refusal> * refusals) {
    const abi::ggml &       g      = *device.ggml;
    const op_registration * op     = operator_of(g, node);
    const auto &            offers = kernels.singles(op != nullptr ? -1 : node->op, op);
    if (offers.empty() || !interceptable(g, node)) {
        return {nullptr, op == nullptr && device.native_supports(node)};
    }

    const bool      native = op == nullptr && device.native_supports(node);
    const node_view view(g, node);
    std::string     reason;
    const auto      refuse = [&](const kernel & k, std::string why) {
        if (refusals != nullptr) {
            refusals->push_back({node_index, k.name, std::move(why)});
        }
    };
    // CAP-3: who asks ggml for cuBLAS gets it
    const bool cublas = native && device.cuda != nullptr && device.cuda->force_cublas && (node->op == g.op.mul_mat || node->op == g.op.mul_mat_id);
    for (const kernel_ptr & k : offers) {
        if (cublas) {
            refuse(*k, "GGML_CUDA_FORCE_CUBLAS is set");
            continue;
        }
        if (!k->active()) {
            refuse(*k, "switched off");
            continue;
        }
        if (!ask(k->desc.supports, *k, view, "does not support it", reason)) {
            k->counters.unsupported.fetch_add(1, std::memory_order_relaxed);
            refuse(*k, reason);
            continue;
        }
        k->counters.supported.fetch_add(1, std::memory_order_relaxed);
        if (native && k->desc.preferred != nullptr && !ask(k->desc.preferred, *k, view, "prefers the native kernel", reason)) {
            refuse(*k, reason);
            continue;
        }
        return {k, native};
    }
    return {nullptr, native};
}

} // namespace ggml_ext::plan
