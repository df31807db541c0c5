// AOT-1 on a real GPU: modules from all forms of code, launched in graphs, recorded and replayed.

#include "module_fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// x -> [ScaleAdd (native) -> swish (from a module)] so often, computed first, recorded and replayed
struct swish_chain {
    static constexpr int64_t N0 = 300, N1 = 7; // no multiple of a block

    model &       m;
    int           n;
    ggml_tensor * x;
    ggml_tensor * y;

    swish_chain(model & owner, int n_steps) : m(owner), n(n_steps) {
        x               = m.input(F32, {N0, N1});
        ggml_tensor * t = x;
        for (int i = 0; i < n; ++i) {
            const float beta = 0.5f + 0.25f * static_cast<float>(i);
            t                = m.g.ggml_scale(m.ctx, m.g.base.ggml_add(m.ctx, t, x), 0.5f);
            t                = m.node("test.swish.v1", {t}, &beta, sizeof(beta));
            REQUIRE_MESSAGE((t != nullptr), ggml_ext_last_error());
        }
        y = t;
        m.expand(y);
    }

    std::vector<float> run(uint32_t seed) {
        const auto xv = random_floats(N0 * N1, seed, 3.0f);
        m.put(x, xv);
        m.compute();
        std::vector<double> v(xv.begin(), xv.end());
        for (int s = 0; s < n; ++s) {
            for (size_t i = 0; i < v.size(); ++i) {
                v[i] = swish_exact(0.5 * (v[i] + xv[i]), 0.5 + 0.25 * s);
            }
        }
        const auto values = m.take<float>(y);
        check_close(values, v, 1e-5);
        return values;
    }
};

// the operator, a kernel of it from that module
struct registered_swish {
    registration  op, kernel;
    module_kernel state;

    explicit registered_swish(ggml_ext_cuda_module * module) {
        state.module = module;
        REQUIRE_OK(register_swish(op));
        register_module_kernel(kernel, "test.swish.module", "test.swish.v1", state, execute_module_swish);
    }
};

void check_in_graph(ggml_ext_cuda_module * module) {
    registered_swish r(module);
    model            m;
    swish_chain      c(m, 6);
    m.allocate();
    const auto first    = c.run(1);
    const auto recorded = c.run(1);
    const auto replayed = c.run(1);
    CHECK(first == recorded);
    CHECK(first == replayed);
    for (uint32_t i = 2; i < 20; ++i) {
        c.run(i);
    }
    CHECK(m.stats().n_recorded == (graphs_disabled() ? 0u : 1u));
    CHECK(m.stats().n_replayed == (graphs_disabled() ? 0u : 20u));
    CHECK(r.state.calls == (graphs_disabled() ? 21 * 6 : 2 * 6));
}

void check_message(const char * part) {
    const std::string message = ggml_ext_last_error();
    CHECK_MESSAGE(message.find(part) != std::string::npos, "\"" << message << "\" lacks \"" << std::string(part) << "\"");
}

} // namespace

TEST_CASE("AOT-1: a kernel from source text; first execution, recording and replays are equal and close to double precision") {
    if (const std::string reason = no_compiler(); !reason.empty()) {
        return skip(reason);
    }
    ggml_ext_cuda_module * handle = nullptr;
    REQUIRE_OK(compile(kernels_text().data(), &handle, {"--fmad=false"}));
    const cuda_module module(handle);
    check_in_graph(module.get());
}

TEST_CASE("AOT-1: the same kernel from nvcc's fat binary, from its PTX") {
    for (const std::string_view image : {kernels_fat_binary(), kernels_ptx()}) {
        CAPTURE(image.size());
        const cuda_module module(image);
        check_in_graph(module.get());
    }
}

TEST_CASE("AOT-1: the same kernel from nvcc's cubin") {
    cudaDeviceProp properties{};
    REQUIRE(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
    if (const int arch = properties.major * 10 + properties.minor; arch != GGML_EXT_TEST_CUBIN_ARCH) {
        return skip("the cubin is for sm_" + std::to_string(GGML_EXT_TEST_CUBIN_ARCH) + ", this GPU is sm_" + std::to_string(arch));
    }
    const cuda_module module(kernels_cubin());
    check_in_graph(module.get());
}

TEST_CASE("AOT-1: what the driver's compiler says of wrong PTX reaches the caller; a cubin that is cut off is refused") {
    ggml_ext_cuda_module * module = nullptr;
    const std::string      ptx    = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry f() { nonsense.u32 %r1; }\n";
    CHECK(ggml_ext_cuda_module_load(attached_gpu(), ptx.data(), ptx.size(), &module) == GGML_EXT_STATUS_FAILED);
    check_message("nonsense");
    std::string cut(kernels_cubin());
    cut.resize(cut.size() - 100);
    CHECK(ggml_ext_cuda_module_load(attached_gpu(), cut.data(), cut.size(), &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("cut off");
    CHECK(module == nullptr);
}

TEST_CASE("AOT-1: what NVRTC says of wrong text and options reaches the caller") {
    if (const std::string reason = no_compiler(); !reason.empty()) {
        return skip(reason);
    }
    ggml_ext_cuda_module * module = nullptr;
    CHECK(compile("extern \"C\" __global__ void f(float * y) {\n    *y = undeclared_name;\n}\n", &module) == GGML_EXT_STATUS_FAILED);
    check_message("test.cu(2)");
    check_message("undeclared_name");
    CHECK(compile("extern \"C\" __global__ void f() {}\n", &module, {"--no-such-option"}) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("--no-such-option");
    CHECK(module == nullptr);
}

TEST_CASE("AOT-1: the driver tells a kernel's parameters, and values of every size arrive") {
    const cuda_module           module(kernels_fat_binary());
    ggml_ext_cuda_function_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_cuda_module_get_function(module.get(), "mixed", &info));
    REQUIRE(info.n_params == 5);
    CHECK(std::vector<size_t>(info.param_sizes, info.param_sizes + 5) == std::vector<size_t>{1, 8, 2, 12, 8});
    CHECK(info.max_threads_per_block >= 32);
    CHECK(info.n_registers > 0);
    CHECK(ggml_ext_cuda_module_get_function(module.get(), "no_such_kernel", &info) == GGML_EXT_STATUS_NOT_FOUND);
    check_message("no_such_kernel");

    registration  op, kernel;
    module_kernel state;
    state.module = module.get();
    REQUIRE_OK(register_swish(op));
    register_module_kernel(kernel, "test.mixed", "test.swish.v1", state, [](const ggml_ext_exec_params * p, void * user_data) -> int {
        const int8_t                      a       = -3;
        const double                      b       = 2.5;
        const int16_t                     c       = -400;
        const int32_t                     d[3]    = {1, 2, 3};
        void *                            y       = p->nodes[0]->dst->data;
        const void * const                args[]  = {&a, &b, &c, d, &y};
        const size_t                      sizes[] = {1, 8, 2, 12, 8};
        const ggml_ext_cuda_launch_params launch{sizeof(launch), static_cast<module_kernel *>(user_data)->module, "mixed", {1, 1, 1}, {1, 1, 1}, 0, 5, args, sizes, 0};
        return ggml_ext_cuda_launch(p->backend, &launch);
    });
    model         m;
    const float   beta = 1.0f;
    ggml_tensor * x    = m.input(F32, {4});
    ggml_tensor * y    = m.node("test.swish.v1", {x}, &beta, sizeof(beta));
    m.expand(y);
    m.allocate();
    for (int i = 0; i < 3; ++i) {
        m.compute();
        CHECK(m.take<float>(y) == std::vector<float>{-3.0f, 2.5f, -400.0f, 321.0f});
    }
}

TEST_CASE("AOT-1: a row of 100 KiB of dynamic shared memory; more than the GPU has is refused by name") {
    constexpr int     N = 25600, ROWS = 3;
    const cuda_module module(kernels_fat_binary());
    registration      op, kernel;
    struct reversing : module_kernel {
        uint32_t bytes = N * sizeof(float);
    } state;
    state.module = module.get();
    REQUIRE_OK(register_swish(op));
    register_module_kernel(kernel, "test.reverse", "test.swish.v1", state, [](const ggml_ext_exec_params * p, void * user_data) -> int {
        const auto &                      the     = *static_cast<const reversing *>(static_cast<module_kernel *>(user_data));
        const ggml_ext_node &             node    = *p->nodes[0];
        const void *                      x       = node.src[0]->data;
        void *                            y       = node.dst->data;
        const int32_t                     n       = N;
        const void * const                args[]  = {&x, &y, &n};
        const size_t                      sizes[] = {8, 8, 4};
        const ggml_ext_cuda_launch_params launch{sizeof(launch), the.module, "reverse", {ROWS, 1, 1}, {1024, 1, 1}, the.bytes, 3, args, sizes, 0};
        return ggml_ext_cuda_launch(p->backend, &launch);
    });
    model         m;
    const float   beta = 1.0f;
    ggml_tensor * x    = m.input(F32, {N, ROWS});
    ggml_tensor * y    = m.node("test.swish.v1", {x}, &beta, sizeof(beta));
    m.expand(y);
    m.allocate();
    const auto xv = random_floats(N * ROWS, 1);
    m.put(x, xv);
    std::vector<float> expected;
    for (int row = 0; row < ROWS; ++row) {
        expected.insert(expected.end(), xv.rend() - (row + 1) * N, xv.rend() - row * N);
    }
    for (int i = 0; i < 3; ++i) {
        m.compute();
        CHECK(m.take<float>(y) == expected);
    }
    state.bytes = 16 << 20;
    model         other;
    ggml_tensor * z = other.node("test.swish.v1", {other.input(F32, {N, ROWS})}, &beta, sizeof(beta));
    other.expand(z);
    other.allocate();
    CHECK(other.g.ggml_backend_sched_graph_compute(other.sched, other.graph) != GGML_COMPUTE_SUCCESS);
    check_message("16777216 bytes of dynamic shared memory");
}

TEST_CASE("AOT-1: recordings outlive a freed handle, and a stale handle is an error, not a crash") {
    cuda_module      module(kernels_fat_binary());
    registered_swish r(module.get());
    model            m;
    swish_chain      c(m, 3);
    m.allocate();
    c.run(1);
    c.run(2);
    ggml_ext_cuda_module * stale = module.get();
    module.free();
    { // other code where the freed code might have been
        const cuda_module another(kernels_fat_binary());
        if (!graphs_disabled()) {
            for (uint32_t i = 3; i < 20; ++i) {
                c.run(i);
            }
        }
    }
    CHECK(ggml_ext_cuda_module_free(stale) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    m.graph = m.g.base.ggml_new_graph_custom(m.ctx, 64, false);
    swish_chain another(m, 2); // has to be launched anew
    m.allocate();
    CHECK(m.g.ggml_backend_sched_graph_compute(m.sched, m.graph) != GGML_COMPUTE_SUCCESS);
    check_message("was freed");
}
