#include "core/swish.h"

#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

using namespace ggml_ext::test;

namespace {

// the call gives `status`, and its message has every one of `parts`
void check_refused(int status, int expected, std::initializer_list<const char *> parts) {
    CHECK_MESSAGE(status == expected, ggml_ext_status_name(status));
    const std::string message = ggml_ext_last_error();
    for (const char * part : parts) {
        CHECK_MESSAGE(message.find(part) != std::string::npos, "\"" << message << "\" has no \"" << part << "\"");
    }
}

ggml_ext_op_desc op_desc(const char * name = "test.op.v1") {
    ggml_ext_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.infer       = infer_like_source;
    return desc;
}

int run_nothing(const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) {
    return GGML_EXT_STATUS_SUCCESS;
}

int execute_nothing(const ggml_ext_exec_params *, void *) {
    return GGML_EXT_STATUS_SUCCESS;
}

int32_t supports_all(const ggml_ext_node *, void *) {
    return 1;
}

ggml_ext_kernel_desc kernel_desc(const char * name = "test.kernel", const char * op = "ADD") {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.supports    = supports_all;
    desc.run         = run_nothing;
    return desc;
}

void count_release(void * user_data) {
    ++*static_cast<std::atomic<int> *>(user_data);
}

// what infer gives, set by each test
struct inference {
    ggml_ext_output out{};
    int             status = GGML_EXT_STATUS_SUCCESS;
    const char *    reason = nullptr;
};

int infer_as_told(int32_t, const ggml_ext_tensor * const *, const void *, ggml_ext_output * out, void * user_data) {
    const auto & told = *static_cast<const inference *>(user_data);
    if (told.reason != nullptr) {
        ggml_ext_set_error(told.reason);
    }
    out->type = told.out.type;
    std::memcpy(out->ne, told.out.ne, sizeof(out->ne));
    return told.status;
}

inference output(int32_t type, std::initializer_list<int64_t> ne) {
    inference told;
    told.out.type = type;
    std::copy(ne.begin(), ne.end(), told.out.ne);
    return told;
}

// a context without a backend
struct context {
    ggml_context * ctx;
    explicit context(size_t size = 1024 * 1024, bool no_alloc = true)
        : ctx((attached_cpu(), stock().base.ggml_init({size, nullptr, no_alloc}))) {}
    ~context() { stock().base.ggml_free(ctx); }
    context(const context &)             = delete;
    context & operator=(const context &) = delete;
};

// An operator and a kernel of it, whose releases are counted.
struct counted_swish {
    ggml_ext_op_desc     op;
    ggml_ext_kernel_desc kernel = swish_kernel(nullptr);

    counted_swish(std::atomic<int> & op_released, std::atomic<int> & kernel_released)
        : op{sizeof(op), "test.swish.v1", sizeof(float), infer_like_source, &op_released, count_release} {
        kernel.run = [](const ggml_ext_exec_params * p, int32_t phase, int32_t ith, int32_t nth, void *) {
            return run_swish(p, phase, ith, nth, nullptr);
        };
        kernel.release   = count_release;
        kernel.user_data = &kernel_released;
    }

    void add(ggml_ext_registration *& added_op, ggml_ext_registration *& added_kernel) const {
        attached_cpu();
        REQUIRE_OK(ggml_ext_register_op(&op, &added_op));
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &kernel, &added_kernel));
    }
};

} // namespace

TEST_CASE("CORE-1: before loading, every entry that needs ggml says so") {
    REQUIRE_FALSE(ggml_ext_is_loaded());
    ggml_ext_abi_info info{};
    info.struct_size = sizeof(info);
    check_refused(ggml_ext_get_abi_info(&info), GGML_EXT_STATUS_NOT_LOADED, {"ggml_ext_load"});
    check_refused(ggml_ext_attach_device(stock().cpu), GGML_EXT_STATUS_NOT_LOADED, {"ggml_ext_load"});
    check_refused(ggml_ext_op_create(nullptr, "x", 0, nullptr, nullptr, 0, nullptr), GGML_EXT_STATUS_NOT_LOADED, {"ggml_ext_load"});
    check_refused(ggml_ext_detach_device(stock().cpu), GGML_EXT_STATUS_NOT_FOUND, {"not attached"});
    CHECK_FALSE(ggml_ext_is_attached(stock().cpu));
    const auto desc = kernel_desc();
    check_refused(ggml_ext_register_kernel(stock().cpu, &desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"not attached"});
    for (const size_t size : {size_t{4}, size_t{12}}) { // the latter ends within a pointer
        const auto short_params = ggml_ext_load_params{size, "a path", nullptr};
        check_refused(ggml_ext_load(&short_params), GGML_EXT_STATUS_INVALID_ARGUMENT, {"struct_size is", std::to_string(size).c_str()});
    }
}

TEST_CASE("CORE-1: a struct that is filled keeps its size, and only the fields that its size covers are written") {
    attached_cpu();
    struct {
        ggml_ext_abi_info info;
        char              later_fields[32];
    } caller;

    std::memset(&caller, 0x5a, sizeof(caller));
    caller.info.struct_size = sizeof(caller); // a newer caller
    CHECK_OK(ggml_ext_get_abi_info(&caller.info));
    CHECK(caller.info.struct_size == sizeof(caller));
    CHECK(caller.info.tensor_size == 336);
    for (const char c : caller.later_fields) {
        CHECK(c == 0x5a);
    }

    std::memset(&caller, 0x5a, sizeof(caller));
    caller.info.struct_size = offsetof(ggml_ext_abi_info, cgraph_size); // an older caller
    CHECK_OK(ggml_ext_get_abi_info(&caller.info));
    CHECK(caller.info.struct_size == offsetof(ggml_ext_abi_info, cgraph_size));
    CHECK(caller.info.tensor_size == 336);
    CHECK(caller.info.cgraph_size == 0x5a5a5a5a5a5a5a5a);

    for (const size_t size : {size_t{0}, size_t{7}, size_t{12}}) {
        caller.info.struct_size = size;
        check_refused(ggml_ext_get_abi_info(&caller.info), GGML_EXT_STATUS_INVALID_ARGUMENT, {"info", "struct_size"});
    }
    check_refused(ggml_ext_get_abi_info(nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"info is NULL"});
}

TEST_CASE("CORE-1: a descriptor of an older or newer caller is read as far as its size says") {
    attached_cpu();
    static std::atomic<int> released;
    released                       = 0;
    auto desc                      = op_desc();
    desc.release                   = count_release;
    desc.user_data                 = &released;
    desc.struct_size               = offsetof(ggml_ext_op_desc, user_data); // a caller that knows no user_data and no release
    ggml_ext_registration * handle = nullptr;
    REQUIRE_OK(ggml_ext_register_op(&desc, &handle));
    CHECK_OK(ggml_ext_unregister(handle));
    CHECK(released == 0);

    struct {
        ggml_ext_op_desc desc;
        char             later_fields[16];
    } newer{op_desc(), {1, 2, 3}};
    newer.desc.struct_size = sizeof(newer);
    REQUIRE_OK(ggml_ext_register_op(&newer.desc, &handle));
    CHECK_OK(ggml_ext_unregister(handle));

    desc.struct_size = 0;
    check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"struct_size is 0"});
    desc.struct_size = 12;
    check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"struct_size is 12"});
    desc.struct_size = offsetof(ggml_ext_op_desc, infer);
    check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"test.op.v1", "no infer"});
    check_refused(ggml_ext_register_op(nullptr, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"desc is NULL"});
    check_refused(ggml_ext_register_kernel(stock().cpu, nullptr, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"desc is NULL"});
    auto kernel        = kernel_desc();
    kernel.struct_size = offsetof(ggml_ext_kernel_desc, run);
    check_refused(ggml_ext_register_kernel(stock().cpu, &kernel, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"neither run nor execute"});
}

TEST_CASE("CORE-1: the message belongs to the thread") {
    check_refused(ggml_ext_register_op(nullptr, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"desc is NULL"});
    std::string other = "?";
    std::thread([&] { other = ggml_ext_last_error(); }).join();
    CHECK(other.empty());
    CHECK(std::string(ggml_ext_last_error()) == "desc is NULL");
    CHECK(std::string(ggml_ext_status_name(GGML_EXT_STATUS_IN_USE)) == "IN_USE");
    CHECK(std::string(ggml_ext_status_name(-1)) == "UNKNOWN");
    CHECK(std::string(ggml_ext_status_name(11)) == "UNKNOWN");
}

TEST_CASE("OP-1: an operator's descriptor is checked, and the message names the value") {
    attached_cpu();
    const auto refused = [](const char * name, std::initializer_list<const char *> parts) {
        const auto desc = op_desc(name);
        check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, parts);
    };
    refused(nullptr, {"operator name is NULL"});
    refused("", {"\"\"", "letters, digits"});
    refused("app.swish v1", {"\"app.swish v1\"", "letters, digits"});
    refused("app.swi\xc3\xa9.v1", {"letters, digits"});
    refused("swish", {"\"swish\"", "app.swish.v1"});
    refused((std::string("a.") + std::string(126, 'x')).c_str(), {"127"});
    auto              desc         = op_desc();
    const std::string longest      = std::string("a.") + std::string(125, 'x');
    desc.name                      = longest.c_str();
    ggml_ext_registration * handle = nullptr;
    REQUIRE_OK(ggml_ext_register_op(&desc, &handle));
    CHECK_OK(ggml_ext_unregister(handle));

    desc            = op_desc();
    desc.attrs_size = GGML_EXT_MAX_ATTR_SIZE + 1;
    check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"test.op.v1", "41 bytes", "at most 40"});
    desc       = op_desc();
    desc.infer = nullptr;
    check_refused(ggml_ext_register_op(&desc, nullptr), GGML_EXT_STATUS_INVALID_ARGUMENT, {"test.op.v1", "no infer"});
}

TEST_CASE("KERNEL-1: a kernel's descriptor is checked, and the message names what is wrong") {
    attached_cpu();
    const auto refused = [](const std::function<void(ggml_ext_kernel_desc &)> & change, int status,
                            std::initializer_list<const char *> parts, uint32_t flags = 0) {
        auto desc = kernel_desc();
        change(desc);
        ggml_ext_registration * handle = nullptr;
        check_refused(ggml_ext_register_kernel_ex(stock().cpu, &desc, flags, &handle), status, parts);
        CHECK(handle == nullptr);
    };
    constexpr int INVALID = GGML_EXT_STATUS_INVALID_ARGUMENT;
    refused([](auto & d) { d.name = nullptr; }, INVALID, {"kernel name is NULL"});
    refused([](auto & d) { d.name = "a b"; }, INVALID, {"\"a b\""});
    refused([](auto & d) { d.supports = nullptr; }, INVALID, {"test.kernel", "none of supports, match and optimize"});
    refused([](auto & d) { d.run = nullptr; }, INVALID, {"neither run nor execute"});
    refused([](auto & d) { d.execute = execute_nothing; }, INVALID, {"both run and execute"});
    refused([](auto & d) { d.op = nullptr; }, INVALID, {"supports but names no op"});
    refused([](auto & d) { d.op = "NO_SUCH_OP"; }, GGML_EXT_STATUS_NOT_FOUND, {"NO_SUCH_OP"});
    refused([](auto & d) { d.op = "test.absent.v1"; }, GGML_EXT_STATUS_NOT_FOUND, {"test.absent.v1"});
    refused([](auto & d) { d.op = ""; }, GGML_EXT_STATUS_NOT_FOUND, {"\"\""});
    refused([](auto &) {}, INVALID, {"0x80"}, 0x80);
    refused([](auto &) {}, INVALID, {"CAPTURE_SAFE"}, GGML_EXT_KERNEL_REPLAY_REUSABLE);
    const auto desc = kernel_desc();
    check_refused(ggml_ext_register_kernel(nullptr, &desc, nullptr), INVALID, {"not attached"});
}

TEST_CASE("CORE-3: names are unique; a duplicate fails and the live one stays") {
    attached_cpu();
    static std::atomic<int> first, second;
    first = second                 = 0;
    auto desc                      = op_desc();
    desc.release                   = count_release;
    desc.user_data                 = &first;
    ggml_ext_registration * handle = nullptr;
    REQUIRE_OK(ggml_ext_register_op(&desc, &handle));
    desc.user_data                = &second;
    ggml_ext_registration * other = nullptr;
    check_refused(ggml_ext_register_op(&desc, &other), GGML_EXT_STATUS_DUPLICATE, {"test.op.v1"});
    CHECK(other == nullptr);
    CHECK(second == 0); // what was refused stays the caller's

    auto kernel                           = kernel_desc("test.kernel", "test.op.v1");
    kernel.release                        = count_release;
    kernel.user_data                      = &first;
    ggml_ext_registration * kernel_handle = nullptr;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &kernel, &kernel_handle));
    kernel.user_data = &second;
    check_refused(ggml_ext_register_kernel(stock().cpu, &kernel, &other), GGML_EXT_STATUS_DUPLICATE, {"test.kernel", "CPU"});
    CHECK(other == nullptr);
    CHECK(second == 0);

    CHECK(first == 0);
    CHECK_OK(ggml_ext_unregister(kernel_handle));
    CHECK(first == 1);
    CHECK_OK(ggml_ext_unregister(handle));
    CHECK(first == 2);

    // the names are free again
    REQUIRE_OK(ggml_ext_register_op(&desc, &handle));
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &kernel, &kernel_handle));
    CHECK_OK(ggml_ext_unregister(kernel_handle));
    CHECK_OK(ggml_ext_unregister(handle));
    CHECK(second == 2);
}

TEST_CASE("CORE-4: handles that are no registration are refused") {
    attached_cpu();
    check_refused(ggml_ext_unregister(nullptr), GGML_EXT_STATUS_NOT_FOUND, {"not (or no longer) registered"});
    int    somewhere = 0;
    auto * garbage   = reinterpret_cast<ggml_ext_registration *>(&somewhere);
    check_refused(ggml_ext_unregister(garbage), GGML_EXT_STATUS_NOT_FOUND, {"not (or no longer) registered"});
    check_refused(ggml_ext_set_enabled(garbage, false), GGML_EXT_STATUS_NOT_FOUND, {"not (or no longer) registered"});
    ggml_ext_kernel_stats stats{};
    stats.struct_size = sizeof(stats);
    check_refused(ggml_ext_get_kernel_stats(garbage, &stats), GGML_EXT_STATUS_NOT_FOUND, {"no registered kernel"});

    const auto              desc   = op_desc();
    ggml_ext_registration * handle = nullptr;
    REQUIRE_OK(ggml_ext_register_op(&desc, &handle));
    check_refused(ggml_ext_set_enabled(handle, false), GGML_EXT_STATUS_INVALID_ARGUMENT, {"test.op.v1", "switch its kernels off"});
    check_refused(ggml_ext_get_kernel_stats(handle, &stats), GGML_EXT_STATUS_NOT_FOUND, {"no registered kernel"});
    CHECK_OK(ggml_ext_unregister(handle));
    check_refused(ggml_ext_unregister(handle), GGML_EXT_STATUS_NOT_FOUND, {"not (or no longer) registered"});
}

TEST_CASE("CORE-4: withdrawing what is in use is refused, and nothing changes") {
    static std::atomic<int> op_released, kernel_released;
    op_released = kernel_released = 0;
    counted_swish          swish_op(op_released, kernel_released);
    ggml_ext_registration *op = nullptr, *k = nullptr;
    swish_op.add(op, k);
    check_refused(ggml_ext_unregister(op), GGML_EXT_STATUS_IN_USE, {"test.swish.v1", "test.swish.cpu"});
    {
        bench         b;
        ggml_tensor * x = b.input({32});
        ggml_tensor * y = swish(b, x, 1.0f);
        b.expand(y);
        b.allocate();
        b.set(x, ramp(32));
        REQUIRE(b.compute() == 0);
        check_refused(ggml_ext_unregister(k), GGML_EXT_STATUS_IN_USE, {"test.swish.cpu", "1 step"});
        check_refused(ggml_ext_detach_device(stock().cpu), GGML_EXT_STATUS_IN_USE, {"CPU", "1 registered kernel"});
        b.set(x, ramp(32, 1.0f));
        REQUIRE(b.compute() == 0);
        check_swish(ramp(32, 1.0f), b.get(y), 1.0);
    }
    CHECK(kernel_released == 0);
    CHECK_OK(ggml_ext_unregister(k));
    CHECK(kernel_released == 1);
    CHECK_OK(ggml_ext_unregister(op));
    CHECK(op_released == 1);
}

TEST_CASE("CORE-4: several are withdrawn in one step, or none of them") {
    static std::atomic<int> op_released, kernel_released, other_released;
    op_released = kernel_released = other_released = 0;
    counted_swish          swish_op(op_released, kernel_released);
    ggml_ext_registration *op = nullptr, *k = nullptr;
    swish_op.add(op, k);
    auto other                    = kernel_desc(); // of a built-in op, and used by nobody
    other.release                 = count_release;
    other.user_data               = &other_released;
    ggml_ext_registration * added = nullptr;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &other, &added));

    ggml_ext_registration * const without_kernel[] = {added, op};
    check_refused(ggml_ext_unregister_all(without_kernel, 2), GGML_EXT_STATUS_IN_USE, {"test.swish.v1", "test.swish.cpu"});
    ggml_ext_registration * const all[] = {added, op, k, k}; // one named twice counts once
    {
        bench         b;
        ggml_tensor * x = b.input({32});
        ggml_tensor * y = swish(b, x, 1.0f);
        b.expand(y);
        b.allocate();
        b.set(x, ramp(32));
        REQUIRE(b.compute() == 0);
        check_refused(ggml_ext_unregister_all(all, 4), GGML_EXT_STATUS_IN_USE, {"test.swish.cpu", "1 step"});
        CHECK(ggml_ext_registration_name(added) != nullptr);
        CHECK(ggml_ext_registration_name(op) != nullptr);
        b.set(x, ramp(32, 1.0f));
        REQUIRE(b.compute() == 0);
        check_swish(ramp(32, 1.0f), b.get(y), 1.0);
    }
    ggml_ext_registration * const unknown[] = {added, op, k, nullptr};
    check_refused(ggml_ext_unregister_all(unknown, 4), GGML_EXT_STATUS_NOT_FOUND, {"not (or no longer) registered"});
    check_refused(ggml_ext_unregister_all(nullptr, 1), GGML_EXT_STATUS_INVALID_ARGUMENT, {"registrations"});
    CHECK(op_released + kernel_released + other_released == 0);
    CHECK_OK(ggml_ext_unregister_all(all, 4));
    CHECK(op_released == 1);
    CHECK(kernel_released == 1);
    CHECK(other_released == 1);
    CHECK(ggml_ext_registration_name(added) == nullptr);
    CHECK_OK(ggml_ext_unregister_all(nullptr, 0));

    swish_op.add(op, k); // the names are free again
    ggml_ext_registration * const again[] = {op, k};
    CHECK_OK(ggml_ext_unregister_all(again, 2));
}

TEST_CASE("CORE-4: an operator that is withdrawn inside its own infer is released after it") {
    attached_cpu();
    struct state {
        ggml_ext_registration * handle          = nullptr;
        bool                    inside          = false;
        int                     released_inside = 0, released = 0;
    };
    static state s;
    s              = state{};
    auto desc      = op_desc();
    desc.user_data = &s;
    desc.infer     = [](int32_t, const ggml_ext_tensor * const *, const void *, ggml_ext_output * out, void * user_data) -> int {
        auto & now       = *static_cast<state *>(user_data);
        now.inside       = true;
        const int status = ggml_ext_unregister(now.handle);
        now.inside       = false;
        out->ne[0] = out->ne[1] = out->ne[2] = out->ne[3] = 1;
        return status;
    };
    desc.release = [](void * user_data) {
        auto & now = *static_cast<state *>(user_data);
        ++(now.inside ? now.released_inside : now.released);
    };
    REQUIRE_OK(ggml_ext_register_op(&desc, &s.handle));
    context       c;
    ggml_tensor * out = nullptr;
    CHECK_OK(ggml_ext_op_create(c.ctx, "test.op.v1", 0, nullptr, nullptr, 0, &out));
    CHECK(s.released_inside == 0);
    CHECK(s.released == 1);
    check_refused(ggml_ext_op_create(c.ctx, "test.op.v1", 0, nullptr, nullptr, 0, &out), GGML_EXT_STATUS_NOT_FOUND, {"test.op.v1"});
    CHECK_FALSE(stock().base.ggml_backend_dev_supports_op(stock().cpu, out)); // its node stays an ordinary, unsupported one
}

TEST_CASE("CORE-4: a release callback may use the registry") {
    attached_cpu();
    static ggml_ext_registration * second;
    static int                     status;
    second       = nullptr;
    status       = -1;
    auto desc    = kernel_desc();
    desc.release = [](void *) {
        const auto again = kernel_desc();
        status           = ggml_ext_register_kernel(stock().cpu, &again, &second);
    };
    ggml_ext_registration * handle = nullptr;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &handle));
    CHECK_OK(ggml_ext_unregister(handle));
    CHECK(status == GGML_EXT_STATUS_SUCCESS);
    CHECK_OK(ggml_ext_unregister(second));
}

TEST_CASE("OP-2: creating a node checks its arguments; nothing is made where it fails") {
    registration op;
    context      c;
    REQUIRE_OK(register_swish(op));
    ggml_tensor * x       = stock().ggml_new_tensor_1d(c.ctx, ggml_ext::TYPE_F32, 8);
    ggml_tensor * none    = nullptr;
    ggml_tensor * out     = nullptr;
    const float   beta    = 1.0f;
    const size_t  used    = stock().base.ggml_used_mem(c.ctx);
    constexpr int INVALID = GGML_EXT_STATUS_INVALID_ARGUMENT;

    check_refused(ggml_ext_op_create(nullptr, "test.swish.v1", 1, &x, &beta, 4, &out), INVALID, {"ctx is NULL"});
    check_refused(ggml_ext_op_create(c.ctx, nullptr, 1, &x, &beta, 4, &out), INVALID, {"op is NULL"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, &x, &beta, 4, nullptr), INVALID, {"out is NULL"});
    check_refused(ggml_ext_op_create(c.ctx, "test.absent.v1", 1, &x, &beta, 4, &out), GGML_EXT_STATUS_NOT_FOUND, {"test.absent.v1"});
    check_refused(ggml_ext_op_create(c.ctx, "ADD", 1, &x, &beta, 4, &out), GGML_EXT_STATUS_NOT_FOUND, {"\"ADD\""});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, &none, &beta, 4, &out), INVALID, {"source 0 is NULL"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, nullptr, &beta, 4, &out), INVALID, {"source 0 is NULL"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", -1, &x, &beta, 4, &out), INVALID, {"-1 sources"});
    std::vector<ggml_tensor *> eleven(11, x);
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 11, eleven.data(), &beta, 4, &out), INVALID, {"11 sources", "0 to 10"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, &x, &beta, 8, &out), INVALID, {"8 bytes of attributes", "expected 4"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, &x, nullptr, 4, &out), INVALID, {"NULL"});
    check_refused(ggml_ext_op_create(c.ctx, "test.swish.v1", 2, eleven.data(), &beta, 4, &out), INVALID, {"swish takes one source"});

    CHECK(out == nullptr);
    CHECK(stock().base.ggml_used_mem(c.ctx) == used);
}

TEST_CASE("OP-1: what infer gives is checked before ggml sees it") {
    static inference told;
    context          c;
    auto             desc = op_desc();
    desc.infer            = infer_as_told;
    desc.user_data        = &told;
    registration op;
    REQUIRE_OK(ggml_ext_register_op(&desc, &op.handle));
    const auto refused = [&](const inference & now, int status, std::initializer_list<const char *> parts) {
        told              = now;
        ggml_tensor * out = nullptr;
        check_refused(ggml_ext_op_create(c.ctx, "test.op.v1", 0, nullptr, nullptr, 0, &out), status, parts);
        CHECK(out == nullptr);
    };
    constexpr int     INVALID = GGML_EXT_STATUS_INVALID_ARGUMENT;
    constexpr int32_t F32 = 0, Q4_0 = 2, REMOVED = 4, Q4_K = 12;
    constexpr int64_t HUGE_NE = int64_t{1} << 62;

    refused(output(F32, {0, 1, 1, 1}), INVALID, {"ne[0] = 0"});
    refused(output(F32, {4, -2, 1, 1}), INVALID, {"ne[1] = -2"});
    refused(output(F32, {4}), INVALID, {"ne[1] = 0"}); // dimensions that were left as they came
    refused(output(F32, {HUGE_NE, 1, 1, 1}), INVALID, {"larger than memory can hold"});
    refused(output(F32, {1, HUGE_NE, HUGE_NE, 1}), INVALID, {"more rows than memory can hold"});
    refused(output(Q4_K, {HUGE_NE, 1, 1, 1}), INVALID, {"larger than memory can hold"});
    refused(output(Q4_0, {33, 1, 1, 1}), INVALID, {"ne[0] = 33", "multiple of 32", "q4_0"});
    for (const int32_t type : {-1, REMOVED, 1000, INT32_MAX}) {
        refused(output(type, {4, 1, 1, 1}), INVALID, {"no ggml type"});
    }
    inference now = output(F32, {4, 1, 1, 1});
    now.status    = GGML_EXT_STATUS_UNSUPPORTED;
    now.reason    = "rows must be even";
    refused(now, GGML_EXT_STATUS_UNSUPPORTED, {"test.op.v1", "infer refused: rows must be even"});
    now.reason = nullptr;
    refused(now, GGML_EXT_STATUS_UNSUPPORTED, {"UNSUPPORTED"});
    now.status = 77; // no status at all
    refused(now, GGML_EXT_STATUS_FAILED, {"77"});
}

TEST_CASE("OP-2: a context that is too small is refused, with and without room for data") {
    static inference told;
    told           = output(0, {1024, 1, 1, 1});
    auto desc      = op_desc();
    desc.infer     = infer_as_told;
    desc.user_data = &told;
    registration op;
    REQUIRE_OK(ggml_ext_register_op(&desc, &op.handle));
    for (const bool no_alloc : {true, false}) {
        CAPTURE(no_alloc);
        // until the context is full: refused then, never ggml's own end of the process
        context       c(16 * 1024, no_alloc);
        ggml_tensor * out    = nullptr;
        int           made   = 0;
        int           status = GGML_EXT_STATUS_SUCCESS;
        while (status == GGML_EXT_STATUS_SUCCESS && made < 1000) {
            status = ggml_ext_op_create(c.ctx, "test.op.v1", 0, nullptr, nullptr, 0, &out);
            made += status == GGML_EXT_STATUS_SUCCESS ? 1 : 0;
        }
        check_refused(status, GGML_EXT_STATUS_NO_MEMORY, {"bytes left", "the node needs"});
        CHECK(made >= (no_alloc ? 40 : 3));
        CHECK(made < 45);
    }
}

TEST_CASE("OP-2: all ten sources and forty bytes of attributes reach the node") {
    static unsigned char seen[GGML_EXT_MAX_ATTR_SIZE];
    static int           n_seen;
    auto                 desc = op_desc();
    desc.attrs_size           = GGML_EXT_MAX_ATTR_SIZE;
    desc.infer                = [](int32_t n_src, const ggml_ext_tensor * const * src, const void * attrs, ggml_ext_output * out, void *) -> int {
        std::memcpy(seen, attrs, sizeof(seen));
        n_seen = n_src;
        std::memcpy(out->ne, src[9]->ne, sizeof(out->ne));
        return GGML_EXT_STATUS_SUCCESS;
    };
    registration op;
    attached_cpu();
    REQUIRE_OK(ggml_ext_register_op(&desc, &op.handle));
    static unsigned char node_attrs[GGML_EXT_MAX_ATTR_SIZE];
    static size_t        node_attrs_size;
    static std::string   node_op;
    auto                 kernel = kernel_desc("test.kernel", "test.op.v1");
    kernel.supports             = [](const ggml_ext_node * node, void *) -> int32_t {
        node_attrs_size = node->attrs_size;
        node_op         = node->op;
        std::memcpy(node_attrs, node->attrs, node->attrs_size);
        return node->n_src == 10 && node->src[9] != nullptr ? 1 : 0;
    };
    registration k;
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &kernel, &k.handle));

    context                    c;
    std::vector<ggml_tensor *> sources;
    for (int i = 0; i < 10; ++i) {
        sources.push_back(stock().ggml_new_tensor_1d(c.ctx, ggml_ext::TYPE_F32, 5 + i));
    }
    unsigned char buffer[GGML_EXT_MAX_ATTR_SIZE + 1];
    for (size_t i = 0; i < sizeof(buffer); ++i) {
        buffer[i] = static_cast<unsigned char>(3 * i + 1);
    }
    ggml_tensor * out = nullptr;
    REQUIRE_OK(ggml_ext_op_create(c.ctx, "test.op.v1", 10, sources.data(), buffer + 1, GGML_EXT_MAX_ATTR_SIZE, &out)); // unaligned
    CHECK(n_seen == 10);
    CHECK(out->ne[0] == 14);
    CHECK(std::memcmp(seen, buffer + 1, sizeof(seen)) == 0);
    CHECK(stock().base.ggml_backend_dev_supports_op(stock().cpu, out));
    CHECK(node_op == "test.op.v1");
    CHECK(node_attrs_size == GGML_EXT_MAX_ATTR_SIZE);
    CHECK(std::memcmp(node_attrs, buffer + 1, sizeof(node_attrs)) == 0);
}

TEST_CASE("CORE-3: a registration takes effect for support queries at once, for plans at the next allocation") {
    attached_cpu();
    const auto fill = [](float value) {
        static float values[2] = {42.0f, 43.0f};
        auto         desc      = kernel_desc(value == 42.0f ? "test.42" : "test.43", "SQR");
        desc.priority          = value == 42.0f ? 0 : 1;
        desc.user_data         = &values[value == 42.0f ? 0 : 1];
        desc.run               = [](const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void * user_data) -> int {
            if (ith == 0) {
                std::fill_n(static_cast<float *>(p->nodes[0]->dst->data), p->nodes[0]->dst->nbytes / 4, *static_cast<float *>(user_data));
            }
            return GGML_EXT_STATUS_SUCCESS;
        };
        return desc;
    };
    registration  first, second;
    const auto    low = fill(42.0f), high = fill(43.0f);
    bench         b;
    ggml_tensor * x = b.input({4});
    ggml_tensor * y = b.g.ggml_sqr(b.ctx, x);
    b.expand(y);
    const auto value = [&] {
        b.set(x, {3.0f, 3.0f, 3.0f, 3.0f});
        REQUIRE(b.compute() == 0);
        return b.get(y)[0];
    };
    const auto reallocate = [&] {
        b.g.ggml_backend_sched_reset(b.sched);
        b.allocate();
    };
    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &low, &first.handle));
    b.allocate();
    CHECK(value() == 42.0f);

    REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &high, &second.handle));
    CHECK(value() == 42.0f); // the plan stays
    reallocate();
    CHECK(value() == 43.0f);

    REQUIRE_OK(ggml_ext_set_enabled(second.handle, false));
    CHECK(value() == 43.0f);
    reallocate();
    CHECK(value() == 42.0f);
    REQUIRE_OK(ggml_ext_set_enabled(first.handle, false));
    reallocate();
    CHECK(value() == 9.0f);
    REQUIRE_OK(ggml_ext_set_enabled(second.handle, true));
    reallocate();
    CHECK(value() == 43.0f);
}

TEST_CASE("CORE-3: the environment switches a kernel off by its name") {
    registration op;
    context      c;
    REQUIRE_OK(register_swish(op));
    ggml_tensor * x    = stock().ggml_new_tensor_1d(c.ctx, ggml_ext::TYPE_F32, 8);
    ggml_tensor * y    = nullptr;
    const float   beta = 1.0f;
    REQUIRE_OK(ggml_ext_op_create(c.ctx, "test.swish.v1", 1, &x, &beta, sizeof(beta), &y));
    const struct {
        const char * value;
        bool         runs;
    } cases[] = {{nullptr, true}, {"0", true}, {"1", false}, {"yes", false}, {"00", false}};
    for (const auto & now : cases) {
        CAPTURE(now.runs);
        if (now.value != nullptr) {
            setenv("GGML_EXT_DISABLE_TEST_SWISH_CPU_2", now.value, 1);
        }
        registration kernel;
        const auto   desc = swish_kernel(nullptr, "test.swish-cpu.2");
        REQUIRE_OK(ggml_ext_register_kernel(stock().cpu, &desc, &kernel.handle));
        unsetenv("GGML_EXT_DISABLE_TEST_SWISH_CPU_2");
        CHECK(stock().base.ggml_backend_dev_supports_op(stock().cpu, y) == now.runs);
        REQUIRE_OK(ggml_ext_set_enabled(kernel.handle, true)); // the environment has the last word
        CHECK(stock().base.ggml_backend_dev_supports_op(stock().cpu, y) == now.runs);
        REQUIRE_OK(ggml_ext_set_enabled(kernel.handle, false));
        CHECK_FALSE(stock().base.ggml_backend_dev_supports_op(stock().cpu, y));
    }
}

TEST_CASE("CORE-4: threads register, withdraw, switch and ask at once; each release comes exactly once") {
    registration op;
    attached_cpu();
    REQUIRE_OK(register_swish(op));
    constexpr int           n_threads = 4, n_rounds = 100;
    static std::atomic<int> released, alive_calls, dead_calls;
    released = alive_calls = dead_calls = 0;
    struct owner {
        std::atomic<bool> alive{true};
    };
    std::vector<owner>       owners(n_threads * n_rounds);
    std::atomic<int>         failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < n_threads; ++t) {
        threads.emplace_back([&, t] {
            ggml_context * ctx  = stock().base.ggml_init({1024 * 1024, nullptr, true});
            ggml_tensor *  x    = stock().ggml_new_tensor_1d(ctx, ggml_ext::TYPE_F32, 8);
            ggml_tensor *  y    = nullptr;
            const float    beta = 1.0f;
            failures += ggml_ext_op_create(ctx, "test.swish.v1", 1, &x, &beta, sizeof(beta), &y) != GGML_EXT_STATUS_SUCCESS;
            const std::string name = "test.thread." + std::to_string(t);
            for (int i = 0; i < n_rounds; ++i) {
                auto desc      = swish_kernel(nullptr, name.c_str());
                desc.user_data = &owners[t * n_rounds + i];
                desc.supports  = [](const ggml_ext_node *, void * user_data) -> int32_t {
                    ++(static_cast<owner *>(user_data)->alive ? alive_calls : dead_calls);
                    return 1;
                };
                desc.release = [](void * user_data) {
                    released += static_cast<owner *>(user_data)->alive.exchange(false) ? 1 : 1000000;
                };
                ggml_ext_registration * handle = nullptr;
                failures += ggml_ext_register_kernel(stock().cpu, &desc, &handle) != GGML_EXT_STATUS_SUCCESS;
                failures += stock().base.ggml_backend_dev_supports_op(stock().cpu, y) ? 0 : 1;
                failures += ggml_ext_set_enabled(handle, false) != GGML_EXT_STATUS_SUCCESS;
                failures += ggml_ext_unregister(handle) != GGML_EXT_STATUS_SUCCESS;
            }
            stock().base.ggml_free(ctx);
        });
    }
    for (std::thread & thread : threads) {
        thread.join();
    }
    CHECK(failures == 0);
    CHECK(alive_calls > 0);
    CHECK(dead_calls == 0);
    CHECK(released == n_threads * n_rounds);
}
