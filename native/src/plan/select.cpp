#include "plan/select.h"

#include "plan/effects.h"
#include "support/status.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace ggml_ext::plan {

namespace {

struct selecting {
    const attached_device & device;
    const ggml_tensor *     node;
    const selecting *       outer;
};
thread_local const selecting * innermost = nullptr;

class selecting_scope {
public:
    selecting_scope(const attached_device & device, const ggml_tensor * node) : now_{device, node, innermost} { innermost = &now_; }
    ~selecting_scope() { innermost = now_.outer; }
    selecting_scope(const selecting_scope &)             = delete;
    selecting_scope & operator=(const selecting_scope &) = delete;

private:
    const selecting now_;
};

struct question {
    const char * callback;
    const char * no;
};

// Asks one callback: NULL for yes, else why not; a failure is a no. `text` may hold the reason.
const char * ask(int32_t (*callback)(const ggml_ext_node *, void *), const kernel & k, const node_view & view, const question & q,
                 std::string & text) {
    set_last_error("");
    const int32_t answer = callback(&view.get(), k.desc.user_data);
    if (answer > 0) {
        return nullptr;
    }
    const char * message = last_error();
    if (answer < 0) {
        const uint64_t times = k.counters.failed.fetch_add(1, std::memory_order_relaxed) + 1;
        text                 = format("%s failed (%s): %s", q.callback, ggml_ext_status_name(status_of_answer(answer)), message);
        if ((times & (times - 1)) == 0) { // each compute asks many times: 1, 2, 4, 8, ...
            log(GGML_EXT_LOG_LEVEL_ERROR, "kernel %s: %s (its failure number %llu)", k.name.c_str(), text.c_str(),
                static_cast<unsigned long long>(times));
        }
        return text.c_str();
    }
    return *message == '\0' ? q.no : text.assign(q.no).append(": ").append(message).c_str();
}

} // namespace

int status_of_answer(int32_t negative) {
    return negative == std::numeric_limits<int32_t>::min() ? GGML_EXT_STATUS_FAILED : -negative;
}

bool being_selected(const attached_device & device, const ggml_tensor * node) {
    for (const selecting * s = innermost; s != nullptr; s = s->outer) {
        if (&s->device == &device && s->node == node) {
            return true;
        }
    }
    return false;
}

void held_answers::hold(bool more) {
    depth += more ? 1 : depth > 0 ? -1
                                  : 0;
    if (depth == 0) {
        answers.clear();
    }
}

const bool * held_answers::find(const attached_device & device, const ggml_tensor * node) {
    if (depth == 0) {
        return nullptr;
    }
    const auto found = answers.find({&device, node});
    return found == answers.end() ? nullptr : &found->second;
}

void held_answers::keep(const attached_device & device, const ggml_tensor * node, bool answer) {
    if (depth > 0) {
        answers.emplace(key{&device, node}, answer);
    }
}

bool has_opaque_source(const attached_device & device, const ggml_tensor * node) {
    if (!device.is_cpu) {
        return false; // other devices' memory is no host memory as a rule
    }
    const auto & fn     = device.ggml->fn;
    const auto   opaque = [&](const ggml_tensor * src) {
        ggml_backend_buffer * buffer = src == nullptr ? nullptr : owner(src)->buffer;
        // what lies on another device is copied before the node runs
        return buffer != nullptr && !fn.ggml_backend_buffer_is_host(buffer) &&
               fn.ggml_backend_buft_get_device(fn.ggml_backend_buffer_get_type(buffer)) == device.device;
    };
    return std::any_of(node->src, node->src + GGML_EXT_MAX_SRC, opaque);
}

bool interceptable(const abi::ggml & g, const ggml_tensor * node) {
    return node->view_src == nullptr && node->op != g.op.none;
}

selection select_kernel(const attached_device & device, const snapshot & kernels, const ggml_tensor * node, int node_index,
                        refusal_list * why_not) {
    const abi::ggml &       g      = *device.ggml;
    const op_registration * op     = operator_of(g, node);
    const auto &            offers = kernels.singles(op != nullptr ? -1 : node->op, op);
    if (offers.empty() || !interceptable(g, node)) {
        return {nullptr, op == nullptr && device.native_supports(node)};
    }

    // asked only where the answer matters: it costs as much as a kernel's own answer
    std::optional<bool> answer;
    const auto          native = [&] { return answer ? *answer : *(answer = op == nullptr && device.native_supports(node)); };
    const auto          refuse = [&](const kernel & k, const char * reason) {
        if (why_not != nullptr) {
            why_not->add(node_index, k.name, reason);
        }
    };
    if (has_opaque_source(device, node)) {
        for (const kernel_ptr & k : offers) {
            refuse(*k, OPAQUE_SOURCE);
        }
        return {nullptr, native()};
    }
    const node_view       view(g, node);
    const selecting_scope scope(device, node);
    // CAP-3: who asks ggml for cuBLAS gets it
    const bool  cublas = device.cuda != nullptr && device.cuda->force_cublas && (node->op == g.op.mul_mat || node->op == g.op.mul_mat_id) && native();
    std::string text;
    bool        switched_off = false;
    for (const kernel_ptr & k : offers) {
        if (cublas) {
            refuse(*k, "GGML_CUDA_FORCE_CUBLAS is set");
            continue;
        }
        if (!k->active()) {
            refuse(*k, "switched off");
            switched_off = true;
            continue;
        }
        if (const char * reason = ask(k->desc.supports, *k, view, {"supports", "does not support it"}, text)) {
            k->counters.unsupported.fetch_add(1, std::memory_order_relaxed);
            refuse(*k, reason);
            continue;
        }
        k->counters.supported.fetch_add(1, std::memory_order_relaxed);
        const bool choice = k->desc.preferred != nullptr && native();
        if (const char * reason = choice ? ask(k->desc.preferred, *k, view, {"preferred", "prefers the native kernel"}, text) : nullptr) {
            refuse(*k, reason);
            continue;
        }
        return {k, false};
    }
    return {nullptr, native(), switched_off};
}

} // namespace ggml_ext::plan
