#pragma once
// The CPU kernel library, registered as a program does it, and graphs with weights that have memory of their own.

#include "core/fixture.h"
#include "support/graph_ops.h"

#include <dlfcn.h>

#include <cmath>
#include <functional>
#include <random>
#include <string>

namespace ggml_ext::test {

// Registers the library's kernels and operators; withdraws them at the end of a scope.
class kernel_library {
public:
    kernel_library() {
        static void * const handle = dlopen(GGML_EXT_TEST_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
        REQUIRE_MESSAGE(handle != nullptr, dlerror());
        const auto init = reinterpret_cast<ggml_ext_kernel_library_init_t>(dlsym(handle, "ggml_ext_kernel_library_init"));
        REQUIRE((init != nullptr));
        const auto add = [](ggml_ext_registration * r, void * context) {
            static_cast<std::vector<ggml_ext_registration *> *>(context)->push_back(r);
            return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
        };
        REQUIRE_OK(init(attached_cpu(), add, &all_));
    }
    ~kernel_library() {
        for (auto it = all_.rbegin(); it != all_.rend(); ++it) {
            CHECK_OK(ggml_ext_unregister(*it));
        }
    }
    kernel_library(const kernel_library &)             = delete;
    kernel_library & operator=(const kernel_library &) = delete;

private:
    std::vector<ggml_ext_registration *> all_;
};

// A graph with weights and inputs; values are set after allocate().
class model : public bench {
public:
    explicit model(int n_threads = 2, bool direct = false) : bench(direct, 128), weights_ctx_(g.base.ggml_init({1 << 20, nullptr, true})) {
        auto * reg         = g.base.ggml_backend_dev_backend_reg(g.cpu);
        auto   set_threads = reinterpret_cast<void (*)(ggml_backend *, int)>(g.base.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"));
        REQUIRE((set_threads != nullptr));
        set_threads(backend, n_threads);
    }
    ~model() {
        if (weights_buffer_ != nullptr) {
            g.base.ggml_backend_buffer_free(weights_buffer_);
        }
        g.base.ggml_free(weights_ctx_);
    }

    ggml_tensor * weight(int32_t type, std::vector<int64_t> ne) {
        return g.base.ggml_new_tensor(weights_ctx_, type, static_cast<int>(ne.size()), ne.data());
    }
    ggml_tensor * typed_input(int32_t type, std::vector<int64_t> ne) {
        ggml_tensor * t = g.base.ggml_new_tensor(ctx, type, static_cast<int>(ne.size()), ne.data());
        g.base.ggml_set_input(t);
        return t;
    }

    void allocate() {
        weights_buffer_ = g.ggml_backend_alloc_ctx_tensors(weights_ctx_, backend);
        bench::allocate();
    }

    template <typename T> void put(ggml_tensor * t, const std::vector<T> & values) {
        REQUIRE(values.size() * sizeof(T) == g.base.ggml_nbytes(t));
        g.ggml_backend_tensor_set(t, values.data(), 0, values.size() * sizeof(T));
    }
    template <typename T> std::vector<T> take(const ggml_tensor * t) {
        std::vector<T> values(g.base.ggml_nbytes(t) / sizeof(T));
        g.ggml_backend_tensor_get(t, values.data(), 0, values.size() * sizeof(T));
        return values;
    }

    // names of the extensions in the backend's most recent plan, in order, "a,b"; "" for a plan without any
    std::string kernels() {
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

    std::string refusals() {
        ggml_ext_plan * plan = nullptr;
        REQUIRE_OK(ggml_ext_plan_copy(backend, 0, &plan));
        ggml_ext_plan_info info{};
        info.struct_size = sizeof(info);
        REQUIRE_OK(ggml_ext_plan_get_info(plan, &info));
        std::string text;
        for (int i = 0; i < info.n_refusals; ++i) {
            ggml_ext_plan_refusal r{};
            r.struct_size = sizeof(r);
            REQUIRE_OK(ggml_ext_plan_get_refusal(plan, i, &r));
            text += std::string(r.kernel) + ": " + r.reason + "\n";
        }
        ggml_ext_plan_free(plan);
        return text;
    }

private:
    ggml_context *        weights_ctx_;
    ggml_backend_buffer * weights_buffer_ = nullptr;
};

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
