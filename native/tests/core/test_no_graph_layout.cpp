// A ggml whose graph layout is not known (a fake): nothing is planned, and nothing breaks.

#include "core/swish.h"

using namespace ggml_ext::test;

TEST_CASE("COMPAT-1: with an unknown graph layout operators still run, overrides do not, and the note says why") {
    const std::string          fake = std::string(GGML_EXT_TEST_FAKES) + "/fake_graph_layout.so";
    const ggml_ext_load_params params{sizeof(params), (stock(), fake.c_str()), nullptr};
    REQUIRE_OK(ggml_ext_load(&params));
    ggml_ext_abi_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_get_abi_info(&info));
    CHECK_FALSE(info.has_graph_views);
    CHECK(std::string(info.note) != "");
    REQUIRE_OK(ggml_ext_attach_device(stock().cpu));

    const auto &   g       = stock();
    ggml_backend * backend = g.base.ggml_backend_dev_init(g.cpu, nullptr);
    ggml_context * ctx     = g.base.ggml_init({1024 * 1024, nullptr, true});
    registration   op, kernel, override_sqr;
    REQUIRE_OK(register_swish(op));
    swish_counts counts;
    const auto   desc = swish_kernel(&counts);
    REQUIRE_OK(ggml_ext_register_kernel(g.cpu, &desc, &kernel.handle));
    static int overridden = 0;
    auto       sqr        = swish_kernel(nullptr, "test.sqr");
    sqr.op                = "SQR";
    sqr.run               = [](const ggml_ext_exec_params *, int32_t, int32_t, int32_t, void *) { return ++overridden, 0; };
    REQUIRE_OK(ggml_ext_register_kernel(g.cpu, &sqr, &override_sqr.handle));

    const int64_t ne[1] = {64};
    ggml_tensor * x     = g.base.ggml_new_tensor(ctx, ggml_ext::TYPE_F32, 1, ne);
    ggml_tensor * y     = nullptr;
    const float   beta  = 0.5f;
    REQUIRE_OK(ggml_ext_op_create(ctx, "test.swish.v1", 1, &x, &beta, sizeof(beta), &y));
    ggml_tensor * z     = g.ggml_sqr(ctx, y);
    ggml_cgraph * graph = g.base.ggml_new_graph_custom(ctx, 16, false);
    g.base.ggml_build_forward_expand(graph, z);
    CHECK(g.base.ggml_backend_dev_supports_op(g.cpu, y));
    ggml_backend_buffer * buffer = g.ggml_backend_alloc_ctx_tensors(ctx, backend);
    const auto            values = ramp(64);
    g.ggml_backend_tensor_set(x, values.data(), 0, 64 * sizeof(float));
    CHECK(g.base.ggml_backend_graph_compute(backend, graph) == 0);
    std::vector<float> result(64);
    g.ggml_backend_tensor_get(z, result.data(), 0, 64 * sizeof(float));
    for (size_t i = 0; i < 64; ++i) {
        const double s = swish_exact(values[i], beta);
        CHECK(result[i] == doctest::Approx(s * s).epsilon(1e-5));
    }
    CHECK(counts.runs > 0);
    CHECK(counts.largest_nth == 1);
    CHECK(overridden == 0);
    g.base.ggml_backend_buffer_free(buffer);
    g.base.ggml_backend_free(backend);
    g.base.ggml_free(ctx);
}
