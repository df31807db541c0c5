// COMPAT-3, SERV-1/2 and ordering on a CUDA device of the fake driver.

#include "cuda/fixture.h"

#include "cuda/fat_binary.h"
#include "fake_images.h"
#include "support/scratch_directory.h"

#include <cstddef>
#include <fstream>

using namespace ggml_ext;
using namespace ggml_ext::test;
using cuda::device_code;
using cuda::runs_on;

TEST_CASE("COMPAT-3: a CUDA library without code for the device is refused by name, and CPU work goes on") {
    cuda_device_options others;
    others.library               = "fake_ggml_cuda_others";
    ggml_backend_device * device = new_cuda_device(others);
    attached_cpu();
    fake_cuda_set_device(9, 0, true, 13000);
    CHECK(ggml_ext_attach_device(device) == GGML_EXT_STATUS_UNSUPPORTED);
    const std::string message = ggml_ext_last_error();
    for (const char * part : {"CUDA0", "fake_ggml_cuda_others.so", "sm_90", "CUDA 13.0", "sm_86, sm_120a, PTX 9.1 for compute_86"}) {
        CHECK_MESSAGE(message.find(part) != std::string::npos, message << " lacks " << std::string(part));
    }
    CHECK_FALSE(ggml_ext_is_attached(device));

    bench         b;
    ggml_tensor * x = b.input({8});
    b.expand(b.g.ggml_sqr(b.ctx, x));
    b.allocate();
    b.set(x, ramp(8));
    CHECK(b.compute() == GGML_COMPUTE_SUCCESS);

    // the same library on other hosts
    fake_cuda_set_device(9, 0, true, 13010);
    CHECK_OK(ggml_ext_attach_device(device)); // the driver of CUDA 13.1 compiles PTX 9.1
    CHECK_OK(ggml_ext_detach_device(device));
    fake_cuda_set_device(8, 9, true, 12000);
    CHECK_OK(ggml_ext_attach_device(device)); // sm_86 runs on 8.9
    CHECK_OK(ggml_ext_detach_device(device));
    fake_cuda_set_device(12, 1, true, 12080);
    CHECK(ggml_ext_attach_device(device) == GGML_EXT_STATUS_UNSUPPORTED); // sm_120a is for 12.0 alone
    fake_cuda_set_device(12, 0, true, 12080);
    CHECK_OK(ggml_ext_attach_device(device));
    CHECK_OK(ggml_ext_detach_device(device));
    fake_cuda_set_device(9, 0, true, 13000);
}

namespace {

// a library for Windows with two sections; the second, of that name, holds `content`
std::string pe_file(const char (&name)[9], const std::string & content) {
    constexpr uint32_t HEADER_AT = 0x80, SECTIONS_AT = HEADER_AT + 24 + 16, CONTENT_AT = SECTIONS_AT + 2 * 40;
    std::string        file(CONTENT_AT, '\0');
    const auto         put = [&](size_t at, const std::string & bytes) { file.replace(at, bytes.size(), bytes); };
    put(0, "MZ");
    put(0x3c, fake::bytes_of(HEADER_AT));
    put(HEADER_AT, std::string("PE\0\0\x64\x86", 6)); // x86-64
    put(HEADER_AT + 6, fake::bytes_of(uint16_t{2}));
    put(HEADER_AT + 20, fake::bytes_of(uint16_t{16})); // bytes of the optional header
    put(SECTIONS_AT, ".text");
    put(SECTIONS_AT + 40, std::string(name, 8));
    put(SECTIONS_AT + 40 + 16, fake::bytes_of(static_cast<uint32_t>(content.size())));
    put(SECTIONS_AT + 40 + 20, fake::bytes_of(CONTENT_AT));
    return file + content;
}

std::string codes_in(const std::string & file_content) {
    const scratch_directory  scratch;
    const std::string        path = (scratch.path / "library").string();
    std::vector<device_code> codes;
    std::ofstream(path, std::ios::binary) << file_content;
    const int status = cuda::read_device_code(path, codes);
    return status == GGML_EXT_STATUS_SUCCESS ? cuda::to_text(codes) : ggml_ext_status_name(status);
}

} // namespace

TEST_CASE("COMPAT-3: code is read from a library for Windows on every system") {
    const std::string whole = pe_file(".nv_fatb", fake::fat_binary("code"));
    CHECK(codes_in(whole) == "sm_90");
    CHECK(codes_in(pe_file(".nv_fat2", fake::fat_binary("code"))) == "none");
    CHECK(codes_in(whole.substr(0, 0xc0)) == "INVALID_ARGUMENT"); // inside the first section's header
    CHECK(codes_in("MZ") == "INVALID_ARGUMENT");
    CHECK(codes_in("") == "INVALID_ARGUMENT");
}

TEST_CASE("COMPAT-3: in a damaged library, whatever its sizes are, reading comes to an end") {
    const std::string image = fake::fat_binary("code");
    for (const uint64_t size : {~uint64_t{0}, ~uint64_t{0} - 15, ~uint64_t{0} - 63, ~uint64_t{0} - 79, uint64_t{1} << 63}) {
        CAPTURE(size);
        for (const size_t field : {offsetof(cuda::fat_binary_header, size), sizeof(cuda::fat_binary_header) + offsetof(cuda::fat_binary_entry, size)}) {
            std::string damaged = image;
            damaged.replace(field, sizeof(size), fake::bytes_of(size));
            CHECK(codes_in(pe_file(".nv_fatb", damaged + image)) == "sm_90");
        }
    }
}

TEST_CASE("COMPAT-3: PTX runs on every later device whose driver knows its language") {
    const device_code ptx80{true, 75, false, 8, 0};
    CHECK(runs_on(ptx80, 7, 5, 12000));
    CHECK(runs_on(ptx80, 12, 0, 13000));
    CHECK_FALSE(runs_on(ptx80, 7, 0, 13000)); // an earlier device
    CHECK_FALSE(runs_on(ptx80, 9, 0, 11080)); // CUDA 11.8 knows PTX 7.8
    // CUDA 12.5 and 12.6 know 8.5, 12.8 knows 8.7, 13.0 knows 9.0
    CHECK(runs_on({true, 75, false, 8, 5}, 9, 0, 12050));
    CHECK(runs_on({true, 75, false, 8, 5}, 9, 0, 12060));
    CHECK_FALSE(runs_on({true, 75, false, 8, 6}, 9, 0, 12060));
    CHECK(runs_on({true, 75, false, 8, 7}, 9, 0, 12080));
    CHECK(runs_on({true, 75, false, 9, 0}, 9, 0, 13000));
    CHECK_FALSE(runs_on({true, 75, false, 9, 1}, 9, 0, 13000));
    // machine code: same major version, not for a later minor one
    CHECK(runs_on({false, 80, false, 0, 0}, 8, 6, 12000));
    CHECK_FALSE(runs_on({false, 89, false, 0, 0}, 8, 6, 12000));
    CHECK_FALSE(runs_on({false, 80, false, 0, 0}, 9, 0, 12000));
}

TEST_CASE("SERV-1, SERV-2: services of a CUDA device") {
    ggml_backend_device * device     = attached_cuda();
    const auto            ordinal_of = service_of<ggml_ext_cuda_device_v1_t>(device, "ggml_ext_cuda_device_v1");
    const auto            context_of = service_of<ggml_ext_cuda_context_v1_t>(device, "ggml_ext_cuda_context_v1");
    const auto            blas_of    = service_of<ggml_ext_cuda_blas_v1_t>(device, "ggml_ext_cuda_blas_v1");
    REQUIRE((ordinal_of != nullptr && context_of != nullptr && blas_of != nullptr));

    CHECK(ggml_ext_get_service(device, "ggml_ext_cuda_device_v1") == reinterpret_cast<void *>(ordinal_of));
    CHECK(ggml_ext_get_service(device, "ggml_ext_cpu_parallel_v1") == nullptr);
    CHECK(std::string(ggml_ext_last_error()).find("ggml_ext_cpu_parallel_v1") != std::string::npos);
    CHECK(ggml_ext_get_service(stock().cpu, "ggml_ext_cpu_parallel_v1") != nullptr);

    int32_t ordinal = -1; // before there is a backend
    CHECK_OK(ordinal_of(device, &ordinal));
    CHECK(ordinal == 3);
    CHECK(ordinal_of(stock().cpu, &ordinal) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ordinal_of(device, nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);

    cuda_device_options second; // a second ggml device on GPU 2; and one that only its name tells
    second.bus = "0000:02:00.0-v1";
    CHECK_OK(ordinal_of(attached_cuda(second), &ordinal));
    CHECK(ordinal == 2);
    second.bus  = nullptr;
    second.name = "CUDA5";
    CHECK_OK(ordinal_of(attached_cuda(second), &ordinal));
    CHECK(ordinal == 5);

    registration op, kernel;
    REQUIRE_OK(register_swish(op));
    cuda_swish            swish;
    ggml_ext_cuda_context inside{};
    inside.struct_size = sizeof(inside);
    {
        cuda_session          s(device);
        ggml_ext_cuda_context outside{};
        outside.struct_size = sizeof(outside);
        CHECK(context_of(s.backend, &outside) == GGML_EXT_STATUS_UNSUPPORTED); // only inside execute
        void * handle = nullptr;
        CHECK(blas_of(s.backend, &handle) == GGML_EXT_STATUS_UNSUPPORTED);
        CHECK(context_of(s.cpu, &outside) == GGML_EXT_STATUS_UNSUPPORTED);
        CHECK(context_of(nullptr, &outside) == GGML_EXT_STATUS_INVALID_ARGUMENT);

        swish.first = [&](cuda::CUstream) { return context_of(s.backend, &inside); };
        register_cuda_swish(kernel, device, swish, 0);
        cuda_graph graph({});
        s.allocate(graph);
        s.run(graph, 1);
        CHECK(inside.device == 3);
        CHECK(inside.stream != nullptr);
        CHECK(inside.stream != native_stream(s.backend));
    }
}

TEST_CASE("CAP-1: work of both streams is ordered by events, in rows of any length") {
    ggml_backend_device * device = attached_cuda();
    registration          op, kernel;
    REQUIRE_OK(register_swish(op));
    cuda_swish swish;
    register_cuda_swish(kernel, device, swish, 0); // not flagged: step by step
    cuda_session s(device);
    for (const int n : {1, 2, 7}) {
        cuda_graph::options o;
        o.n_ours = n;
        cuda_graph graph(o);
        s.allocate(graph);
        for (int i = 0; i < 5; ++i) {
            s.run(graph, i);
        }
    }
    CHECK(swish.calls == 50);
}

TEST_CASE("KERNEL-3: a failing kernel's message reaches the caller, and the next compute works") {
    ggml_backend_device * device = attached_cuda();
    registration          op, kernel;
    REQUIRE_OK(register_swish(op));
    cuda_swish swish;
    bool       fails = true;
    swish.first      = [&](cuda::CUstream) {
        ggml_ext_set_error("no more of it");
        return static_cast<int>(fails ? GGML_EXT_STATUS_FAILED : GGML_EXT_STATUS_SUCCESS);
    };
    register_cuda_swish(kernel, device, swish, SAFE);
    cuda_session s(device);
    cuda_graph   graph({});
    s.allocate(graph);
    graph.set_input(1);
    CHECK(s.compute(graph) != GGML_COMPUTE_SUCCESS);
    CHECK(std::string(ggml_ext_last_error()).find("no more of it") != std::string::npos);
    fails = false;
    for (int i = 0; i < 4; ++i) {
        s.run(graph, i);
    }
}

TEST_CASE("SERV-2: who asks for the stream has the thread on its device, whatever was computed on another GPU before") {
    cuda_device_options elsewhere;
    elsewhere.bus                 = "0000:02:00.0";
    elsewhere.name                = "CUDA1";
    ggml_backend_device * other   = attached_cuda(elsewhere);
    ggml_backend_device * device  = attached_cuda();
    const auto            context = service_of<ggml_ext_cuda_context_v1_t>(device, "ggml_ext_cuda_context_v1");
    registration          op, kernel, other_kernel;
    cuda_swish            swish, other_swish;
    std::vector<int>      devices;
    REQUIRE_OK(register_swish(op));
    register_cuda_swish(other_kernel, other, other_swish, SAFE, "test.swish.other");
    cuda_session inner(other), s(device);
    cuda_graph   inner_graph({});
    inner.allocate(inner_graph);
    other_swish.first = [&](cuda::CUstream) {
        devices.push_back(fake_cuda_current_device());
        return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
    };
    swish.first = [&](cuda::CUstream) {
        devices.push_back(fake_cuda_current_device());
        inner.run(inner_graph, 1);
        ggml_ext_cuda_context again{};
        again.struct_size = sizeof(again);
        const int status  = context(s.backend, &again);
        devices.push_back(fake_cuda_current_device());
        return status;
    };
    register_cuda_swish(kernel, device, swish, 0); // not flagged: step by step
    cuda_graph::options o;
    o.n_ours = 2;
    cuda_graph graph(o);
    s.allocate(graph);
    s.run(graph, 1);
    CHECK(devices == std::vector<int>{3, 2, 3, 3, 2, 3});
    inner.close();
    s.close();
}
