#pragma once
// The CPU kernel library, registered as a program does it, and graphs with weights that have memory of their own.

#include "core/fixture.h"
#include "support/graph_ops.h"
#include "support/kernel_library.h"

#include <cmath>
#include <functional>
#include <string>

namespace ggml_ext::test {

struct kernel_library : registered_library {
    kernel_library() : registered_library(GGML_EXT_TEST_CPU_LIBRARY, attached_cpu()) {}
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

    template <typename T> void           put(ggml_tensor * t, const std::vector<T> & values) { put_values(t, values); }
    template <typename T> std::vector<T> take(const ggml_tensor * t) { return take_values<T>(t); }

    std::string kernels() { return kernels_of(backend); }

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

} // namespace ggml_ext::test
