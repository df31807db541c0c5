#include "ggml-ext-cpu-ops.h"
#include "kernels_ggml/fixture.h"

#include <atomic>
#include <memory>
#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

ggml_ext_kernel_library_init_t init_function() {
    void * handle = dlopen(GGML_EXT_TEST_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    REQUIRE_MESSAGE(handle != nullptr, dlerror());
    return reinterpret_cast<ggml_ext_kernel_library_init_t>(dlsym(handle, "ggml_ext_kernel_library_init"));
}

int refuse_all(ggml_ext_registration *, void * calls) {
    ++*static_cast<int *>(calls);
    return GGML_EXT_STATUS_NO_MEMORY;
}

int keep(ggml_ext_registration *, void *) {
    return GGML_EXT_STATUS_SUCCESS;
}

alignas(64) float memory[256 * 512]; // of weights

} // namespace

TEST_CASE("JAVA-5: the library registers all or nothing: no device, a caller that takes nothing, names that are taken") {
    const auto init  = init_function();
    int        calls = 0;
    CHECK(init(nullptr, keep, nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(init(attached_cpu(), nullptr, nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(std::string(ggml_ext_last_error()).find("NULL") != std::string::npos);
    CHECK(init(attached_cpu(), refuse_all, &calls) == GGML_EXT_STATUS_NO_MEMORY);
    CHECK(calls == 1);
    {
        kernel_library library; // nothing of the failed attempts is in its way
        CHECK(init(attached_cpu(), keep, nullptr) == GGML_EXT_STATUS_DUPLICATE);
        model                          b;
        ggml_tensor *                  src[] = {b.weight(24, {8, 4}), b.weight(24, {8, 2})};
        const ggml_ext_linear_i8_attrs attrs{};
        ggml_tensor *                  out = nullptr;
        CHECK_OK(ggml_ext_op_create(b.ctx, GGML_EXT_OP_LINEAR_I8, 2, src, &attrs, sizeof(attrs), &out)); // the first one's operator is still there
    }
    kernel_library again;
}

TEST_CASE("FUSE-1: every kernel has an off switch named after it") {
    setenv("GGML_EXT_DISABLE_CPU_MUL_MAT_F32", "1", 1);
    {
        kernel_library library;
        model          b;
        ggml_tensor *  w = b.weight(0, {32, 16});
        ggml_tensor *  x = b.typed_input(0, {32, 16});
        b.expand(b.g.base.ggml_mul_mat(b.ctx, w, x));
        b.allocate();
        REQUIRE(b.compute() == 0);
        CHECK(b.kernels() == "");
    }
    unsetenv("GGML_EXT_DISABLE_CPU_MUL_MAT_F32");
}

TEST_CASE("CACHE-1: two backends come to one new weight at the same time") {
    kernel_library     library;
    const int64_t      K = 256, N = 512, M = 8;
    const stock_ggml & g = stock();
    std::fill(std::begin(memory), std::end(memory), 1.0f);
    ggml_backend_buffer * buffer = g.base.ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory));
    struct caller {
        std::unique_ptr<model> b;
        ggml_tensor *          y;
    };
    std::vector<caller> callers;
    for (int i = 0; i < 2; ++i) {
        caller        c{std::make_unique<model>(1), nullptr};
        ggml_tensor * w = c.b->weight(0, {K, N});
        REQUIRE(g.base.ggml_backend_tensor_alloc(buffer, w, memory) == 0);
        ggml_tensor * x = c.b->typed_input(0, {K, M});
        c.y             = g.base.ggml_mul_mat(c.b->ctx, w, x);
        c.b->expand(c.y);
        c.b->bench::allocate();
        c.b->put(x, std::vector<float>(static_cast<size_t>(K * M), 1.0f));
        callers.push_back(std::move(c));
    }
    std::vector<std::thread> threads;
    std::atomic<int>         failed{0};
    for (caller & c : callers) {
        threads.emplace_back([&] { failed += c.b->compute() != 0; });
    }
    for (std::thread & t : threads) {
        t.join();
    }
    CHECK(failed == 0);
    for (caller & c : callers) {
        for (const float v : c.b->get(c.y)) {
            REQUIRE(v == static_cast<float>(K));
        }
        CHECK(c.b->kernels() == "cpu.mul_mat_f32");
    }
    callers.clear();
    g.base.ggml_backend_buffer_free(buffer);
}

TEST_CASE("CACHE-1: a weight whose address is taken by another one is not taken for it") {
    kernel_library     library;
    const int64_t      K = 384, N = 256, M = 8;
    const stock_ggml & g = stock();
    for (const float value : {1.0f, 3.0f, -2.0f}) {
        CAPTURE(value);
        std::fill(std::begin(memory), std::end(memory), value);
        ggml_backend_buffer * buffer = g.base.ggml_backend_cpu_buffer_from_ptr(memory, sizeof(memory));
        {
            model         b;
            ggml_tensor * w = b.weight(0, {K, N});
            REQUIRE(g.base.ggml_backend_tensor_alloc(buffer, w, memory) == 0);
            ggml_tensor * x = b.typed_input(0, {K, M});
            ggml_tensor * y = g.base.ggml_mul_mat(b.ctx, w, x);
            b.expand(y);
            b.bench::allocate();
            b.put(x, std::vector<float>(static_cast<size_t>(K * M), 1.0f));
            REQUIRE(b.compute() == 0);
            CHECK(b.kernels() == "cpu.mul_mat_f32");
            for (const float v : b.get(y)) {
                REQUIRE(v == value * static_cast<float>(K));
            }
        }
        g.base.ggml_backend_buffer_free(buffer);
    }
}
