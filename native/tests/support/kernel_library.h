#pragma once
// Kernel libraries in tests: one registered on a device, the kernels that a plan has, and values to compute with.

#include "core/fixture.h"

#include <dlfcn.h>

#include <random>
#include <string>
#include <vector>

namespace ggml_ext::test {

// Registers a library's kernels and operators; withdraws them at the end of a scope.
class registered_library {
public:
    registered_library(const char * file, ggml_backend_device * device) {
        void * const handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
        REQUIRE_MESSAGE(handle != nullptr, dlerror());
        const auto init = reinterpret_cast<ggml_ext_kernel_library_init_t>(dlsym(handle, "ggml_ext_kernel_library_init"));
        REQUIRE((init != nullptr));
        const auto add = [](ggml_ext_registration * r, void * context) {
            static_cast<std::vector<ggml_ext_registration *> *>(context)->push_back(r);
            return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
        };
        REQUIRE_OK(init(device, add, &all_));
    }
    ~registered_library() {
        for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
            CHECK_OK(ggml_ext_unregister(*it));
        }
    }
    registered_library(const registered_library &)             = delete;
    registered_library & operator=(const registered_library &) = delete;

private:
    std::vector<ggml_ext_registration *> all_;
};

// Names of the extensions in the backend's most recent plan, in order, "a,b"; "" for a plan without any.
inline std::string kernels_of(ggml_backend * backend) {
    ggml_ext_plan * plan = nullptr;
    if (ggml_ext_plan_copy(backend, 0, &plan) != GGML_EXT_STATUS_SUCCESS) {
        return "";
    }
    ggml_ext_plan_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_plan_get_info(plan, &info));
    std::string names;
    for (int i = 0; i < info.n_steps; ++i) {
        ggml_ext_plan_step s{};
        s.struct_size = sizeof(s);
        REQUIRE_OK(ggml_ext_plan_get_step(plan, i, &s));
        if (s.kernel != nullptr) {
            names += (names.empty() ? "" : ",") + std::string(s.kernel);
        }
    }
    ggml_ext_plan_free(plan);
    return names;
}

template <typename T> void put_values(ggml_tensor * t, const std::vector<T> & values) {
    REQUIRE(values.size() * sizeof(T) == stock().base.ggml_nbytes(t));
    stock().ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(T));
}

template <typename T> std::vector<T> take_values(const ggml_tensor * t) {
    std::vector<T> values(stock().base.ggml_nbytes(t) / sizeof(T));
    stock().ggml_backend_tensor_get(t, values.data(), 0, values.size() * sizeof(T));
    return values;
}

// a function of ggml's that only one test program needs
template <typename F> F resolve(const char * name) {
    static void * const base = dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD);
    const auto          f    = reinterpret_cast<F>(dlsym(base, name));
    REQUIRE_MESSAGE((f != nullptr), name);
    return f;
}

inline std::vector<float> random_floats(size_t n, uint32_t seed, float scale = 1.0f) {
    std::mt19937       random(seed);
    std::vector<float> v(n);
    for (float & x : v) {
        x = scale * (static_cast<float>(random() >> 8) / static_cast<float>(1 << 23) - 1.0f);
    }
    return v;
}

inline std::vector<int8_t> random_bytes(size_t n, uint32_t seed) {
    std::mt19937        random(seed);
    std::vector<int8_t> v(n);
    for (int8_t & x : v) {
        x = static_cast<int8_t>(static_cast<int>(random() % 256) - 128);
    }
    return v;
}

} // namespace ggml_ext::test
