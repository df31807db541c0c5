// A program of its own: what is proven on the CPU device stays proven for the process.

#include "core/fixture.h"

using namespace ggml_ext::test;

TEST_CASE("COMPAT-1: another device is attached only after the CPU device, on which layouts are proven") {
    const ggml_ext_load_params params = stock().load_params();
    REQUIRE_OK(ggml_ext_load(&params));

    // a copy of the CPU device that calls itself a GPU: the type comes from the fourth entry of its table
    void * other[32];
    std::memcpy(other, stock().cpu, 17 * sizeof(void *));
    other[3]   = reinterpret_cast<void *>(+[](ggml_backend_device *) -> int32_t { return 1; });
    auto * gpu = reinterpret_cast<ggml_backend_device *>(other);
    REQUIRE(stock().base.ggml_backend_dev_type(gpu) == 1);

    CHECK(ggml_ext_attach_device(gpu) == GGML_EXT_STATUS_UNSUPPORTED);
    CHECK(std::string(ggml_ext_last_error()).find("attach the CPU device first") != std::string::npos);
    CHECK_FALSE(ggml_ext_is_attached(gpu));
    attached_cpu();
    REQUIRE_OK(ggml_ext_attach_device(gpu));
    CHECK_OK(ggml_ext_detach_device(gpu));
}
