#include "support/second_device.h"

#include "support/table_words.h"

#include <cstring>

namespace ggml_ext::test {

namespace {

using init_function     = ggml_backend * (*) (ggml_backend_device *, const char *);
using supports_function = bool (*)(ggml_backend_device *, const ggml_tensor *);

struct device_parts {
    words             device{};
    words             memory{}; // its buffer type
    init_function     cpu_init     = nullptr;
    supports_function cpu_supports = nullptr;
    uint64_t          choice       = 0;
};

device_parts & parts();

ggml_backend * init_second(ggml_backend_device * device, const char * params) {
    ggml_backend * backend = parts().cpu_init(stock().cpu, params);
    void **        word    = reinterpret_cast<void **>(backend);
    while (*word != stock().cpu) {
        ++word;
    }
    *word = device;
    return backend;
}

bool supports_second(ggml_backend_device *, const ggml_tensor * op) {
    const device_parts & p = parts();
    const uint64_t       h = (static_cast<uint64_t>(op->op) + 1) * p.choice * 0x9e3779b97f4a7c15ull;
    return p.cpu_supports(stock().cpu, op) && (p.choice == 0 || (h >> 40) % 4 != 0);
}

device_parts make_parts() {
    using device_call = void * (*) (void *);
    device_parts p;
    std::memcpy(p.device.data(), static_cast<void *>(stock().cpu), sizeof(p.device));
    const int init     = word_called([](void * d) { stock().base.ggml_backend_dev_init(static_cast<ggml_backend_device *>(d), nullptr); });
    const int supports = word_called([](void * d) { stock().base.ggml_backend_dev_supports_op(static_cast<ggml_backend_device *>(d), nullptr); });
    const int name     = word_called(find_in_base<device_call>("ggml_backend_dev_name"));
    const int type     = word_called(find_in_base<device_call>("ggml_backend_dev_type"));
    const int memory   = word_called(find_in_base<device_call>("ggml_backend_dev_buffer_type"));
    const int may_use  = word_called([](void * d) { find_in_base<bool (*)(void *, void *)>("ggml_backend_dev_supports_buft")(d, d); });
    const int is_host  = word_called(find_in_base<device_call>("ggml_backend_buft_is_host"));
    p.cpu_init         = reinterpret_cast<init_function>(p.device[init]);
    p.cpu_supports     = reinterpret_cast<supports_function>(p.device[supports]);

    std::memcpy(p.memory.data(), find_in_base<void * (*) (void *)>("ggml_backend_dev_buffer_type")(stock().cpu), sizeof(p.memory));
    p.memory[is_host] = reinterpret_cast<void *>(+[](void *) { return false; });

    p.device[init]     = reinterpret_cast<void *>(&init_second);
    p.device[supports] = reinterpret_cast<void *>(&supports_second);
    p.device[name]     = reinterpret_cast<void *>(+[](void *) { return "Second"; });
    p.device[type]     = reinterpret_cast<void *>(+[](void *) { return 1; }); // GGML_BACKEND_DEVICE_TYPE_GPU
    p.device[memory]   = reinterpret_cast<void *>(+[](void *) { return static_cast<void *>(parts().memory.data()); });
    p.device[may_use]  = reinterpret_cast<void *>(+[](void *, void * buffer_type) { return buffer_type == parts().memory.data(); });
    return p;
}

device_parts & parts() {
    static device_parts instance = make_parts();
    return instance;
}

} // namespace

ggml_backend_device * second_device() {
    return reinterpret_cast<ggml_backend_device *>(parts().device.data());
}

void set_second_device_choice(uint64_t choice) {
    parts().choice = choice;
}

void set_n_threads(ggml_backend * backend, int n_threads) {
    auto * reg = stock().base.ggml_backend_dev_backend_reg(stock().cpu);
    auto * set = stock().base.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
    reinterpret_cast<void (*)(ggml_backend *, int)>(set)(backend, n_threads);
}

ggml_backend * new_native_cpu_backend(int n_threads) {
    ggml_backend * backend = parts().cpu_init(stock().cpu, nullptr);
    set_n_threads(backend, n_threads);
    return backend;
}

ggml_backend * new_native_second_backend(int n_threads) {
    ggml_backend * backend = init_second(second_device(), nullptr);
    set_n_threads(backend, n_threads);
    return backend;
}

} // namespace ggml_ext::test
