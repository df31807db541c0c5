// What a program does with a kernel library: open it, call its one function, keep the registrations, withdraw them.

#include "core/fixture.h"

#include <dlfcn.h>

#include <thread>

using namespace ggml_ext::test;

namespace {

struct library {
    void *                         handle = dlopen(GGML_EXT_TEST_KERNEL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    ggml_ext_kernel_library_init_t init   = nullptr;
    library() {
        REQUIRE_MESSAGE(handle != nullptr, dlerror());
        init = reinterpret_cast<ggml_ext_kernel_library_init_t>(dlsym(handle, "ggml_ext_kernel_library_init"));
        REQUIRE_MESSAGE((init != nullptr), "it has no ggml_ext_kernel_library_init");
    }
    ~library() { dlclose(handle); }
};

int keep(ggml_ext_registration * registration, void * context) {
    static_cast<std::vector<ggml_ext_registration *> *>(context)->push_back(registration);
    return GGML_EXT_STATUS_SUCCESS;
}

int refuse(ggml_ext_registration *, void *) {
    ggml_ext_set_error("no room for registrations");
    return GGML_EXT_STATUS_NO_MEMORY;
}

void withdraw(std::vector<ggml_ext_registration *> & registrations) {
    for (; !registrations.empty(); registrations.pop_back()) {
        CHECK_OK(ggml_ext_unregister(registrations.back()));
    }
}

} // namespace

TEST_CASE("CORE-2: a kernel library in plain C brings its operator and kernel to a device") {
    ggml_backend_device *                device = attached_cpu();
    library                              lib;
    std::vector<ggml_ext_registration *> registrations;
    REQUIRE_OK(lib.init(device, keep, &registrations));
    CHECK(registrations.size() == 2);
    {
        bench         b;
        ggml_tensor * x    = b.input({31, 3});
        ggml_tensor * y    = nullptr;
        const float   bias = 0.25f;
        REQUIRE_OK(ggml_ext_op_create(b.ctx, "test.square_plus.v1", 1, &x, &bias, sizeof(bias), &y));
        ggml_tensor * z = b.g.base.ggml_add(b.ctx, y, x);
        b.expand(z);
        b.allocate();
        b.set(x, ramp(93));
        REQUIRE(b.compute() == 0);
        const auto in = ramp(93), out = b.get(z);
        for (size_t i = 0; i < in.size(); ++i) {
            CHECK(out[i] == doctest::Approx(static_cast<double>(in[i]) * in[i] + 0.25 + in[i]).epsilon(1e-6));
        }
        ggml_ext_kernel_stats stats{};
        stats.struct_size = sizeof(stats);
        REQUIRE_OK(ggml_ext_get_kernel_stats(registrations[1], &stats));
        CHECK(stats.n_executed == 1);
    }
    withdraw(registrations);
}

TEST_CASE("CORE-3: a library that fails half way leaves nothing registered, and its reason stays") {
    ggml_backend_device *                device = attached_cpu();
    library                              lib;
    std::vector<ggml_ext_registration *> registrations;
    CHECK(lib.init(device, refuse, nullptr) == GGML_EXT_STATUS_NO_MEMORY);
    CHECK(std::string(ggml_ext_last_error()) == "no room for registrations");
    CHECK(lib.init(nullptr, keep, &registrations) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(std::string(ggml_ext_last_error()).find("not attached") != std::string::npos);
    CHECK(registrations.empty());

    REQUIRE_OK(lib.init(device, keep, &registrations)); // the names were free
    CHECK(lib.init(device, keep, &registrations) == GGML_EXT_STATUS_DUPLICATE);
    CHECK(registrations.size() == 2); // the first ones stay
    withdraw(registrations);
    REQUIRE_OK(lib.init(device, keep, &registrations));
    withdraw(registrations);
}

namespace {

int infer_nothing(int32_t, const ggml_ext_tensor * const *, const void *, ggml_ext_output *, void *) {
    return GGML_EXT_STATUS_INVALID_ARGUMENT;
}

ggml_ext_registration * register_op(const char * name) {
    ggml_ext_op_desc desc{};
    desc.struct_size            = sizeof(desc);
    desc.name                   = name;
    desc.infer                  = infer_nothing;
    ggml_ext_registration * out = nullptr;
    REQUIRE_OK(ggml_ext_register_op(&desc, &out));
    return out;
}

// Hands the second of four over, withdraws the third itself; another thread's is its own.
int forgets(ggml_backend_device *, ggml_ext_add_registration add, void * context) {
    register_op("test.first.v1");
    const int status = add(register_op("test.second.v1"), context);
    CHECK_OK(ggml_ext_unregister(register_op("test.third.v1")));
    register_op("test.fourth.v1");
    ggml_ext_registration * of_another = nullptr;
    std::thread([&] { of_another = register_op("test.of_another_thread.v1"); }).join();
    CHECK_OK(ggml_ext_unregister(of_another));
    return status;
}

int forgets_and_fails(ggml_backend_device *, ggml_ext_add_registration add, void * context) {
    register_op("test.first.v1");
    CHECK_OK(add(register_op("test.second.v1"), context));
    ggml_ext_set_error("no kernel for this processor");
    return GGML_EXT_STATUS_UNSUPPORTED;
}

int fails_without_word(ggml_backend_device *, ggml_ext_add_registration, void *) {
    return GGML_EXT_STATUS_FAILED;
}

int refuse_the_second(ggml_ext_registration * registration, void * context) {
    auto & kept = *static_cast<std::vector<ggml_ext_registration *> *>(context);
    return kept.size() == 1 ? refuse(registration, nullptr) : keep(registration, context);
}

bool is_free(const char * name) {
    return ggml_ext_unregister(register_op(name)) == GGML_EXT_STATUS_SUCCESS;
}

} // namespace

TEST_CASE("JAVA-5: what a library registers and does not hand over is handed over for it") {
    ggml_backend_device *                device = attached_cpu();
    std::vector<ggml_ext_registration *> registrations;
    REQUIRE_OK(ggml_ext_init_kernel_library(forgets, device, keep, &registrations));
    std::vector<std::string> names;
    for (const ggml_ext_registration * registration : registrations) {
        names.emplace_back(ggml_ext_registration_name(registration));
    }
    CHECK(names == std::vector<std::string>{"test.second.v1", "test.first.v1", "test.fourth.v1"});
    withdraw(registrations);

    library lib; // one that hands all over itself
    REQUIRE_OK(ggml_ext_init_kernel_library(lib.init, device, keep, &registrations));
    CHECK(registrations.size() == 2);
    withdraw(registrations);
}

TEST_CASE("JAVA-5: of a library that fails, or whose registrations are refused, nothing stays registered") {
    ggml_backend_device *                device = attached_cpu();
    std::vector<ggml_ext_registration *> registrations;
    CHECK(ggml_ext_init_kernel_library(forgets_and_fails, device, keep, &registrations) == GGML_EXT_STATUS_UNSUPPORTED);
    CHECK(std::string(ggml_ext_last_error()) == "no kernel for this processor");
    CHECK(is_free("test.first.v1"));
    CHECK(is_free("test.second.v1"));

    ggml_ext_set_error("of an earlier call");
    CHECK(ggml_ext_init_kernel_library(fails_without_word, device, keep, &registrations) == GGML_EXT_STATUS_FAILED);
    CHECK(std::string(ggml_ext_last_error()).find("earlier") == std::string::npos);

    registrations.clear();
    CHECK(ggml_ext_init_kernel_library(forgets, device, refuse_the_second, &registrations) == GGML_EXT_STATUS_NO_MEMORY);
    CHECK(std::string(ggml_ext_last_error()) == "no room for registrations");
    CHECK(is_free("test.first.v1"));
    CHECK(is_free("test.second.v1"));
    CHECK(is_free("test.fourth.v1"));

    CHECK(ggml_ext_init_kernel_library(nullptr, device, keep, &registrations) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_init_kernel_library(forgets, nullptr, keep, &registrations) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_init_kernel_library(forgets, device, nullptr, &registrations) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(std::string(ggml_ext_last_error()) == "add is NULL");
}

TEST_CASE("CORE-1: the message of a thread goes with the thread") {
    const std::string long_message(10000, 'x'); // of a length that is kept on the heap
    ggml_ext_set_error("of this thread");
    for (int i = 0; i < 100; ++i) {
        std::thread([&] { ggml_ext_set_error(long_message.c_str()); }).join();
    }
    CHECK(std::string(ggml_ext_last_error()) == "of this thread");
}
