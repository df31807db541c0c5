// CAP-3: what keeps plans from becoming CUDA graphs, and the other switches. All are read when a device is attached.

#include "cuda/fixture.h"

#include "support/graph_ops.h"
#include "support/table_words.h"

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

class environment {
public:
    environment(const char * name, const char * value) : name_(name) { setenv(name, value, 1); }
    ~environment() { unsetenv(name_); }
    environment(const environment &)             = delete;
    environment & operator=(const environment &) = delete;

private:
    const char * name_;
};

// recordings of a plan that is computed five times
int recordings(ggml_backend_device * device, const char * kernel_name = "test.swish.cuda", int expected_calls = -1) {
    registration op, kernel;
    REQUIRE_OK(register_swish(op));
    cuda_swish swish;
    register_cuda_swish(kernel, device, swish, SAFE, kernel_name);
    cuda_session       s(device);
    cuda_graph         graph({});
    const driver_calls recorded("cuStreamBeginCapture");
    s.allocate(graph);
    for (int i = 0; i < 5; ++i) {
        s.run(graph, i);
    }
    if (expected_calls >= 0) {
        CHECK(swish.calls == expected_calls);
    }
    return recorded.count();
}

} // namespace

TEST_CASE("CAP-3: nothing is switched off as it comes") {
    CHECK(recordings(attached_cuda()) == 1);
}

TEST_CASE("CAP-3: GGML_CUDA_DISABLE_GRAPHS") {
    const environment e("GGML_CUDA_DISABLE_GRAPHS", "1");
    CHECK(recordings(attached_cuda(), "test.swish.cuda", 5) == 0);
}

TEST_CASE("CAP-3: no virtual memory management in the device, or in ggml's build") {
    fake_cuda_set_device(9, 0, false, 13000);
    CHECK(recordings(attached_cuda()) == 0);
    fake_cuda_set_device(9, 0, true, 13000);
    cuda_device_options o;
    o.no_vmm = true;
    CHECK(recordings(attached_cuda(o)) == 0);
}

TEST_CASE("CAP-3: GGML_CUDA_FORCE_CUBLAS keeps matrix products native") {
    const auto runs_on_kernel = [] {
        ggml_backend_device * device = attached_cuda();
        registration          kernel;
        ggml_ext_kernel_desc  desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.mul_mat";
        desc.op          = "MUL_MAT";
        desc.supports    = supports_f32;
        std::atomic<int> calls{0};
        desc.user_data = &calls;
        desc.execute   = [](const ggml_ext_exec_params *, void * count) {
            ++*static_cast<std::atomic<int> *>(count);
            return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
        };
        REQUIRE_OK(ggml_ext_register_kernel(device, &desc, &kernel.handle));
        const auto &   g       = stock();
        auto *         backend = g.base.ggml_backend_dev_init(device, nullptr);
        ggml_context * ctx     = g.base.ggml_init({1 << 20, nullptr, true});
        ggml_cgraph *  graph   = g.base.ggml_new_graph_custom(ctx, 8, false);
        g.base.ggml_build_forward_expand(graph, g.base.ggml_mul_mat(ctx, g.ggml_new_tensor_2d(ctx, TYPE_F32, 4, 4), g.ggml_new_tensor_2d(ctx, TYPE_F32, 4, 4)));
        auto * buffer = g.ggml_backend_alloc_ctx_tensors(ctx, backend);
        CHECK(g.base.ggml_backend_graph_compute(backend, graph) == GGML_COMPUTE_SUCCESS);
        g.base.ggml_backend_free(backend);
        g.base.ggml_backend_buffer_free(buffer);
        g.base.ggml_free(ctx);
        return calls.load() == 1;
    };
    CHECK(runs_on_kernel());
    const environment e("GGML_CUDA_FORCE_CUBLAS", "1");
    CHECK_FALSE(runs_on_kernel());
}

TEST_CASE("CAP-3: GGML_CUDA_DISABLE_FUSION, and a rule's own switch") {
    const auto fused = [] {
        ggml_backend_device * device = attached_cuda();
        registration          rule;
        std::atomic<int>      calls{0};
        ggml_ext_kernel_desc  desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.scale_sqr";
        desc.op          = "SCALE";
        desc.user_data   = &calls;
        desc.match       = [](const ggml_ext_graph * graph, int32_t first, void *) -> int32_t {
            const ggml_ext_node * next = ggml_ext_graph_node(graph, first + 1);
            return next != nullptr && std::strcmp(next->op, "SQR") == 0 ? 2 : 0;
        };
        desc.execute = [](const ggml_ext_exec_params *, void * count) {
            ++*static_cast<std::atomic<int> *>(count);
            return static_cast<int>(GGML_EXT_STATUS_SUCCESS);
        };
        REQUIRE_OK(ggml_ext_register_kernel_ex(device, &desc, GGML_EXT_KERNEL_OVERLAP_SAFE, &rule.handle));
        cuda_session   s(device);
        const auto &   g     = stock();
        ggml_context * ctx   = g.base.ggml_init({1 << 20, nullptr, true});
        ggml_cgraph *  graph = g.base.ggml_new_graph_custom(ctx, 8, false);
        ggml_tensor *  x     = g.ggml_new_tensor_2d(ctx, TYPE_F32, 4, 4);
        g.base.ggml_build_forward_expand(graph, g.ggml_sqr(ctx, g.ggml_scale(ctx, x, 2.0f)));
        for (int i = 0; i < graph->n_nodes; ++i) {
            g.ggml_backend_sched_set_tensor_backend(s.sched, graph->nodes[i], s.backend);
        }
        REQUIRE(g.ggml_backend_sched_alloc_graph(s.sched, graph));
        CHECK(g.ggml_backend_sched_graph_compute(s.sched, graph) == GGML_COMPUTE_SUCCESS);
        s.close();
        g.base.ggml_free(ctx);
        return calls.load() == 1;
    };
    CHECK(fused());
    {
        const environment e("GGML_CUDA_DISABLE_FUSION", "1");
        CHECK_FALSE(fused());
    }
    {
        const environment e("GGML_CUDA_DISABLE_FUSION", "0"); // as ggml reads it
        CHECK(fused());
    }
    const environment e("GGML_EXT_DISABLE_TEST_SCALE_SQR", "1");
    CHECK_FALSE(fused());
}

TEST_CASE("CAP-1: a plan with MUL_MAT_ID, which may wait for the host, is not recorded") {
    ggml_backend_device * device = attached_cuda();
    registration          op, kernel;
    REQUIRE_OK(register_swish(op));
    cuda_swish swish;
    register_cuda_swish(kernel, device, swish, SAFE);
    const auto &   g       = stock();
    auto *         backend = g.base.ggml_backend_dev_init(device, nullptr);
    ggml_context * ctx     = g.base.ggml_init({1 << 20, nullptr, true});
    ggml_cgraph *  graph   = g.base.ggml_new_graph_custom(ctx, 16, false);
    ggml_tensor *  experts = g.ggml_new_tensor_3d(ctx, TYPE_F32, 4, 4, 2);
    ggml_tensor *  rows    = g.ggml_new_tensor_3d(ctx, TYPE_F32, 4, 1, 3);
    ggml_tensor *  ids     = g.ggml_new_tensor_2d(ctx, TYPE_I32, 1, 3);
    const auto     product = find_in_base<ggml_tensor * (*) (ggml_context *, ggml_tensor *, ggml_tensor *, ggml_tensor *)>("ggml_mul_mat_id");
    ggml_tensor *  t       = product(ctx, experts, rows, ids);
    const float    beta    = 0.5f;
    ggml_tensor *  y       = nullptr;
    REQUIRE_OK(ggml_ext_op_create(ctx, "test.swish.v1", 1, &t, &beta, sizeof(beta), &y));
    g.base.ggml_build_forward_expand(graph, y);
    auto *     buffer = g.ggml_backend_alloc_ctx_tensors(ctx, backend);
    const auto zeros  = std::vector<float>(64, 0.0f);
    for (ggml_tensor * input : {experts, rows, ids}) {
        g.ggml_backend_tensor_set(input, zeros.data(), 0, g.base.ggml_nbytes(input));
    }
    const driver_calls recorded("cuStreamBeginCapture");
    for (int i = 0; i < 4; ++i) {
        CHECK(g.base.ggml_backend_graph_compute(backend, graph) == GGML_COMPUTE_SUCCESS);
    }
    CHECK(recorded.count() == 0);
    CHECK(swish.calls == 4);
    g.base.ggml_backend_free(backend);
    g.base.ggml_backend_buffer_free(buffer);
    g.base.ggml_free(ctx);
}
