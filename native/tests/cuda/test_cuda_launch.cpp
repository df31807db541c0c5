// AOT-1: kernels of modules are launched inside execute, with checked arguments; their code outlives recordings.

#include "cuda/module_fixture.h"

#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// A module with swish, a kernel that launches from it, a backend, a graph.
struct launching {
    ggml_ext_cuda_module *  module;
    registered_module_swish r;
    cuda_session            session{one_cuda()};
    cuda_graph              graph{{}};

    explicit launching(uint32_t flags, const char * entry = SWISH_ENTRY)
        : module(load_module(one_cuda(), fake::cubin(entry))), r(one_cuda(), module, flags) {
        session.allocate(graph);
    }
    ~launching() {
        session.close();
        if (module != nullptr) {
            CHECK_OK(ggml_ext_cuda_module_free(module));
        }
        CHECK(std::string(fake_cuda_violations()) == "");
    }

    void free_module() {
        CHECK_OK(ggml_ext_cuda_module_free(module));
        module = nullptr;
    }

    // a compute whose launch is refused
    void check_refused(const char * part) {
        CAPTURE(part);
        const driver_calls launched("cuLaunchKernel");
        graph.set_input(1);
        CHECK(session.compute(graph) != GGML_COMPUTE_SUCCESS);
        check_message(part);
        CHECK(launched.count() == 0);
    }
};

} // namespace

TEST_CASE("AOT-1: a launch that does not fit the kernel is refused, names what is wrong, and the next compute works") {
    using params = ggml_ext_cuda_launch_params;
    struct wrong {
        const char * part;
        void (*change)(params &);
    };
    static const void * args[]  = {args, args, args, args, args};
    static size_t       sizes[] = {8, 8, 8, 8, 8};
    const wrong         all[]   = {
        {"3 arguments, expected 4", [](params & p) { p.n_args = 3; }},
        {"5 arguments, expected 4", [](params & p) { p.n_args = 5; p.args = args; p.arg_sizes = sizes; }},
        {"-1 arguments, expected 4", [](params & p) { p.n_args = -1; }},
        {"args is NULL", [](params & p) { p.args = nullptr; }},
        {"arg_sizes is NULL", [](params & p) { p.arg_sizes = nullptr; }},
        {"args[1] is NULL", [](params & p) { static const void * hole[] = {args, nullptr, args, args}; p.args = hole; }},
        {"argument 2 has 8 bytes, expected 4", [](params & p) { p.arg_sizes = sizes; }},
        {"grid[0] = 0", [](params & p) { p.grid[0] = 0; }},
        {"grid[1] = 65536, expected 1 to 65535", [](params & p) { p.grid[1] = 65536; }},
        {"grid[2] = 0", [](params & p) { p.grid[2] = 0; }},
        {"block[2] = 0", [](params & p) { p.block[2] = 0; }},
        {"block[2] = 65, expected 1 to 64", [](params & p) { p.block[2] = 65; }},
        {"blocks of 16 x 17 x 1 threads, but this kernel runs with at most 256", [](params & p) { p.block[1] = 17; }},
        {"231425 bytes of dynamic shared memory, but this GPU has at most 231424", [](params & p) { p.shared_memory = 232448 - 1024 + 1; }},
        {"flags is 0x2, expected 0 or GGML_EXT_CUDA_LAUNCH_EARLY", [](params & p) { p.flags = 2; }},
        {"params->function is NULL", [](params & p) { p.function = nullptr; }},
        {"no kernel \"swash\"", [](params & p) { p.function = "swash"; }},
        {"is none, or was freed", [](params & p) { p.module = nullptr; }},
        {"is none, or was freed", [](params & p) { p.module = reinterpret_cast<ggml_ext_cuda_module *>(&p); }},
        {"params->struct_size is 4", [](params & p) { p.struct_size = 4; }},
    };
    launching l(0);
    l.session.run(l.graph, 1);
    for (const wrong & w : all) {
        l.r.swish.change = [&](params & p, ggml_backend *&) { w.change(p); };
        l.check_refused(w.part);
        l.r.swish.change = nullptr;
        l.session.run(l.graph, 2);
    }
}

TEST_CASE("AOT-1: arguments arrive in their order, and the grid and block that were given") {
    launching l(SAFE);
    // x and y exchanged: the kernel reads y, so y is not swish(x)
    static const void * swapped[4];
    l.r.swish.change = [](ggml_ext_cuda_launch_params & p, ggml_backend *&) {
        swapped[0] = p.args[1], swapped[1] = p.args[0], swapped[2] = p.args[2], swapped[3] = p.args[3];
        p.args = swapped;
    };
    l.graph.set_input(1);
    REQUIRE(l.session.compute(l.graph) == GGML_COMPUTE_SUCCESS);
    std::vector<float> y(48);
    stock().ggml_backend_tensor_get(l.graph.y, y.data(), 0, y.size() * sizeof(float));
    CHECK(y[7] != doctest::Approx(l.graph.expected(l.graph.values(1)[7])).epsilon(1e-5));

    static unsigned seen[7];
    fake_cuda_set_kernel("swish", [](const fake_cuda_kernel_run * r) {
        const unsigned now[] = {r->grid[0], r->grid[1], r->grid[2], r->block[0], r->block[1], r->block[2], r->shared_memory};
        std::memcpy(seen, now, sizeof(seen));
    });
    l.r.swish.change = [](ggml_ext_cuda_launch_params & p, ggml_backend *&) {
        const uint32_t grid[] = {5, 6, 7}, block[] = {2, 3, 4};
        std::memcpy(p.grid, grid, sizeof(grid));
        std::memcpy(p.block, block, sizeof(block));
        p.shared_memory = 100;
    };
    REQUIRE(l.session.compute(l.graph) == GGML_COMPUTE_SUCCESS);
    REQUIRE(l.session.compute(l.graph) == GGML_COMPUTE_SUCCESS);
    CHECK(std::vector<unsigned>(seen, seen + 7) == std::vector<unsigned>{5, 6, 7, 2, 3, 4, 100});
}

TEST_CASE("AOT-1: a kernel that waits by itself may begin early, if it was compiled for a GPU on which it can wait") {
    struct {
        const char * entry;
        uint32_t     flags;
        int          early; // launches of two
    } const all[] = {
        {".entry swish 8,8,4,8 256 1024 90\n", GGML_EXT_CUDA_LAUNCH_EARLY, 2},
        {".entry swish 8,8,4,8 256 1024 90\n", 0, 0},
        {".entry swish 8,8,4,8 256 1024 80\n", GGML_EXT_CUDA_LAUNCH_EARLY, 0},
    };
    for (const auto & c : all) {
        CAPTURE(c.entry);
        CAPTURE(c.flags);
        launching l(SAFE, c.entry);
        l.r.swish.change = [&](ggml_ext_cuda_launch_params & p, ggml_backend *&) { p.flags = c.flags; };
        const driver_calls early("cuLaunchKernelEx"), others("cuLaunchKernel");
        for (int i = 0; i < 4; ++i) {
            l.session.run(l.graph, i);
        }
        CHECK(early.count() == c.early);
        CHECK(others.count() == 2 - c.early);
        CHECK(fake_cuda_instantiated().n_programmatic == (c.early > 0 ? 2 : 1)); // and the native range behind it
    }
}

TEST_CASE("AOT-1: a caller that was compiled before there were flags has none") {
    launching l(0);
    l.r.swish.change = [](ggml_ext_cuda_launch_params & p, ggml_backend *&) {
        p.flags       = 0xffffffff;
        p.struct_size = offsetof(ggml_ext_cuda_launch_params, flags);
    };
    l.session.run(l.graph, 1);
}

TEST_CASE("AOT-1: dynamic shared memory beyond 48 KiB is asked of the driver, once") {
    launching          l(0);
    const driver_calls raised("cuFuncSetAttribute");
    uint32_t           bytes = 0;
    l.r.swish.change         = [&](ggml_ext_cuda_launch_params & p, ggml_backend *&) { p.shared_memory = bytes; };
    const auto run           = [&](uint32_t n) {
        bytes = n;
        l.session.run(l.graph, 1); // the fake driver refuses a launch with more than was allowed
        return raised.count();
    };
    CHECK(run(48 * 1024 - SWISH_STATIC_BYTES) == 0);
    CHECK(run(64 * 1024) == 1);
    CHECK(run(64 * 1024) == 1);
    CHECK(run(50 * 1024) == 1);
    CHECK(run(232448 - SWISH_STATIC_BYTES) == 2);
    fake_cuda_fail_next("cuLaunchKernel", 999);
    CHECK(l.session.compute(l.graph) != GGML_COMPUTE_SUCCESS);
    check_message("cuLaunchKernel");
}

TEST_CASE("AOT-1: launched only inside execute, on its thread and its backend") {
    launching                   l(0);
    ggml_ext_cuda_launch_params p{};
    p.struct_size = sizeof(p);
    p.module      = l.module;
    p.function    = "swish";
    CHECK(ggml_ext_cuda_launch(l.session.backend, &p) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("inside execute of a kernel of this backend only");
    CHECK(ggml_ext_cuda_launch(l.session.cpu, &p) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("is not a CUDA backend");
    CHECK(ggml_ext_cuda_launch(nullptr, &p) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_cuda_launch(l.session.backend, nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);

    cuda_session other(one_cuda());
    l.r.swish.change = [&](ggml_ext_cuda_launch_params &, ggml_backend *& backend) { backend = other.backend; };
    l.check_refused("of this backend only");
    l.r.swish.change = nullptr;
    l.r.swish.first  = [&](ggml_backend * backend) {
        int status = GGML_EXT_STATUS_SUCCESS;
        std::thread([&] { status = ggml_ext_cuda_launch(backend, &p); }).join();
        return status;
    };
    l.check_refused("UNSUPPORTED");
}

TEST_CASE("AOT-1: a module of another GPU is refused by name") {
    cuda_device_options second;
    second.bus                          = "0000:02:00.0";
    ggml_ext_cuda_module * of_the_other = load_module(attached_cuda(second), fake::cubin(SWISH_ENTRY));
    launching              l(0);
    l.r.swish.module = of_the_other;
    l.check_refused("was made for GPU 2, and this backend is on GPU 3");
    CHECK_OK(ggml_ext_cuda_module_free(of_the_other));
}

TEST_CASE("AOT-1: recordings outlive the handle; its code goes when the backend is freed") {
    const int before = fake_cuda_live();
    {
        launching l(REUSABLE);
        l.session.run(l.graph, 1);
        l.session.run(l.graph, 2);
        const driver_calls unloaded("cuModuleUnload");
        l.free_module();
        for (int i = 0; i < 4; ++i) {
            l.session.run(l.graph, i);
        }
        // a graph that has to be recorded anew needs the handle
        cuda_graph::options o;
        o.n_ours = 2;
        cuda_graph another(o);
        l.session.allocate(another);
        another.set_input(1);
        CHECK(l.session.compute(another) != GGML_COMPUTE_SUCCESS);
        check_message("was freed");
        CHECK(unloaded.count() == 0);
        l.session.close();
        CHECK(unloaded.count() == 1);
    }
    CHECK(fake_cuda_live() == before);
}

TEST_CASE("AOT-1: a module that nothing was launched from goes at once") {
    const driver_calls     unloaded("cuModuleUnload");
    ggml_ext_cuda_module * module = load_module(one_cuda(), fake::ptx(SWISH_ENTRY));
    CHECK(unloaded.count() == 0);
    CHECK_OK(ggml_ext_cuda_module_free(module));
    CHECK(unloaded.count() == 1);
}

TEST_CASE("AOT-1: modules load outside capture: in a first execution, and not in a recording") {
    launching         l(SAFE);
    const std::string image = fake::cubin(SWISH_ENTRY);
    int               made = 0, refused = 0;
    l.r.swish.first = [&](ggml_backend *) {
        ggml_ext_cuda_module * module = nullptr;
        const int              status = ggml_ext_cuda_module_load(one_cuda(), image.data(), image.size(), &module);
        if (status == GGML_EXT_STATUS_SUCCESS) {
            ++made;
            return ggml_ext_cuda_module_free(module);
        }
        ++refused;
        CHECK(status == GGML_EXT_STATUS_UNSUPPORTED);
        check_message("modules are not made while a stream is captured");
        return status;
    };
    const driver_calls launched("cuGraphLaunch");
    for (int i = 0; i < 4; ++i) {
        l.session.run(l.graph, i);
    }
    CHECK(refused == 1); // the attempt to record; the plan runs step by step from then on
    CHECK(made == 4);
    CHECK(launched.count() == 0);
}

TEST_CASE("AOT-1: two backends on two threads launch from one module, and free it meanwhile") {
    launching  l(SAFE);
    const auto work = [](int seed) {
        cuda_session        s(one_cuda());
        cuda_graph::options o;
        o.n_ours = 2;
        o.ne1    = 2 + seed;
        cuda_graph graph(o);
        s.allocate(graph);
        for (int i = 0; i < 20; ++i) {
            s.run(graph, seed + i % 5);
        }
    };
    std::atomic<bool> over{false};
    std::thread       other(work, 1);
    std::thread       maker([&] {
        while (!over) {
            CHECK_OK(ggml_ext_cuda_module_free(load_module(one_cuda(), fake::cubin(SWISH_ENTRY))));
        }
    });
    work(3);
    other.join();
    over = true;
    maker.join();
    CHECK(l.r.swish.calls == 8);
}
