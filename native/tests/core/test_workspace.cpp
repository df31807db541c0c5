#include "core/scale_add.h"
#include "support/second_device.h"

#include <cstdint>
#include <string>

using namespace ggml_ext::test;

TEST_CASE("KERNEL-4: workspace that does not fit into memory is an error of the compute, on a GPU too, and the next graph computes") {
    second_device(); // before the CPU is attached
    attached_cpu();
    REQUIRE_OK(ggml_ext_attach_device(second_device()));
    for (ggml_backend_device * device : {stock().cpu, second_device()}) {
        static size_t        wanted;
        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.huge";
        desc.op          = "SQR";
        desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
        desc.prepare     = [](const ggml_ext_prepare_params *, ggml_ext_prepared * out, void *) -> int {
            out->workspace_size = wanted;
            return GGML_EXT_STATUS_SUCCESS;
        };
        desc.run = [](const ggml_ext_exec_params * p, int32_t, int32_t ith, int32_t, void *) -> int {
            if (ith == 0) {
                std::memset(p->workspace, 0, 1);
                std::fill_n(static_cast<float *>(p->nodes[0]->dst->data), 8, 9.0f);
            }
            return GGML_EXT_STATUS_SUCCESS;
        };
        registration kernel;
        REQUIRE_OK(ggml_ext_register_kernel(device, &desc, &kernel.handle));
        // what no machine has; what leaves 63 bits with the layer's own bytes, and 64; what every machine has
        for (const size_t size : {size_t{1} << 47, size_t{PTRDIFF_MAX}, SIZE_MAX, size_t{1} << 20}) {
            CAPTURE(size);
            wanted = size;
            bench                       b; // its backend is the CPU's
            ggml_backend *              backend    = b.g.base.ggml_backend_dev_init(device, nullptr);
            ggml_backend *              backends[] = {backend, b.backend};
            struct ggml_backend_sched * sched      = b.g.base.ggml_backend_sched_new(backends, nullptr, 2, 256, false, true);
            set_n_threads(backend, 2);
            ggml_tensor * x = b.input({8});
            ggml_tensor * y = x;
            for (int i = 0; i < 6; ++i) {
                y = b.g.ggml_sqr(b.ctx, y);
                b.g.ggml_backend_sched_set_tensor_backend(sched, y, backend);
            }
            b.expand(y);
            REQUIRE(b.g.ggml_backend_sched_alloc_graph(sched, b.graph));
            b.set(x, ramp(8));
            const int32_t status = b.g.ggml_backend_sched_graph_compute(sched, b.graph);
            if (size > size_t{1} << 30) {
                CHECK(status != 0);
                CHECK(std::string(ggml_ext_last_error()) == "KERNEL-4: no memory for " + std::to_string(size) + " bytes of workspace of kernel test.huge");
            } else {
                CHECK(status == 0);
                CHECK(b.get(y) == std::vector<float>(8, 9.0f));
                CHECK(stats_of(backend).workspace_size == 0); // it is in ggml's buffer
            }
            b.g.base.ggml_backend_sched_free(sched);
            b.g.base.ggml_backend_free(backend);
        }
    }
    CHECK_OK(ggml_ext_detach_device(second_device()));
}
