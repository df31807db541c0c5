// Where ggml keeps the functions of a device, a backend and a registry: an object of which every word is a stub is given to a
// public accessor, and the stub that fires names the word.

#include "abi/probes.h"

#include <array>
#include <utility>

namespace ggml_ext::abi {

namespace {

constexpr int N_WORDS = 64;

struct record {
    int n_fired = 0;
    int word    = -1;
};

thread_local record fired;

// What a stub returns is read as a name, a pointer, a number or a bool, if at all: an empty string, a struct of zeros, false.
alignas(256) char nothing[4096];

template <int WORD> void * stub() {
    fired.n_fired++;
    fired.word = WORD;
    return nothing;
}

struct fake_object {
    std::array<void *, N_WORDS> words;

    fake_object() : fake_object(std::make_integer_sequence<int, N_WORDS>()) {}

    template <typename T> T * as() { return reinterpret_cast<T *>(words.data()); }

private:
    template <int... WORD>
    explicit fake_object(std::integer_sequence<int, WORD...>) : words{reinterpret_cast<void *>(&stub<WORD>)...} {}
};

template <typename F> bool find_word(const char * accessor, F && call, int & word, std::string & why) {
    fired = {};
    call();
    if (fired.n_fired != 1) {
        why = std::string(accessor) + " called " + std::to_string(fired.n_fired) + " entries of the table, expected 1";
        return false;
    }
    word = fired.word;
    return true;
}

} // namespace

bool probe_tables(ggml & g, std::string & why) {
    const functions &     fn = g.fn;
    slots &               s  = g.slot;
    fake_object           device_words;
    fake_object           backend_words;
    fake_object           reg_words;
    ggml_backend_device * device  = device_words.as<ggml_backend_device>();
    ggml_backend *        backend = backend_words.as<ggml_backend>();
    ggml_backend_reg *    reg     = reg_words.as<ggml_backend_reg>();
    ggml_backend_event    event   = {device, nullptr};

    probe_context ctx(fn);
    ggml_tensor * tensor = fn.ggml_add(ctx.get(), ctx.new_f32(4), ctx.new_f32(4));
    ggml_cgraph * graph  = fn.ggml_new_graph_custom(ctx.get(), 4, false);

    const auto find  = [&](const char * function, const auto & call, auto & slot) { return find_word(function, call, slot, why); };
    bool       found = find("ggml_backend_dev_init", [&] { fn.ggml_backend_dev_init(device, nullptr); }, s.dev_init_backend);
    found            = found && find("ggml_backend_dev_supports_op", [&] { fn.ggml_backend_dev_supports_op(device, tensor); }, s.dev_supports_op);
    found            = found && find("ggml_backend_dev_offload_op", [&] { fn.ggml_backend_dev_offload_op(device, tensor); }, s.dev_offload_op);
    found            = found && find("ggml_backend_free", [&] { fn.ggml_backend_free(backend); }, s.backend_free);
    found            = found && find("ggml_backend_graph_compute_async", [&] { fn.ggml_backend_graph_compute_async(backend, graph); }, s.backend_graph_compute);
    found            = found && find("ggml_backend_event_record", [&] { fn.ggml_backend_event_record(&event, backend); }, s.backend_event_record);
    found            = found && find("ggml_backend_event_wait", [&] { fn.ggml_backend_event_wait(backend, &event); }, s.backend_event_wait);
    found            = found && find("ggml_backend_reg_get_proc_address", [&] { fn.ggml_backend_reg_get_proc_address(reg, "ggml_ext_probe"); }, s.reg_get_proc_address);
    return found;
}

} // namespace ggml_ext::abi
