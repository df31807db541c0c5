#include "bench.h"
#include "bench_launch.h"
#include "module_fixture.h"

namespace ggml_ext::test {

namespace {

int execute_linked_swish(const ggml_ext_exec_params * p, void * context) {
    ggml_ext_cuda_context cuda{};
    cuda.struct_size = sizeof(cuda);
    if (const int status = reinterpret_cast<ggml_ext_cuda_context_v1_t>(context)(p->backend, &cuda); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const ggml_ext_node & node = *p->nodes[0];
    float                 beta;
    std::memcpy(&beta, node.attrs, sizeof(beta));
    return launch_swish(static_cast<const float *>(node.src[0]->data), static_cast<float *>(node.dst->data), beta,
                        static_cast<long long>(node.dst->nbytes / sizeof(float)), static_cast<cudaStream_t>(cuda.stream)) == cudaSuccess
               ? GGML_EXT_STATUS_SUCCESS
               : GGML_EXT_STATUS_FAILED;
}

void register_linked(registration & r, const char * op) {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = "test.swish.linked";
    desc.op          = op;
    desc.user_data   = ggml_ext_get_service(attached_gpu(), "ggml_ext_cuda_context_v1");
    desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
    desc.execute     = execute_linked_swish;
    REQUIRE_OK(ggml_ext_register_kernel_ex(attached_gpu(), &desc, GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE, &r.handle));
}

void build(model & m, const char * op) {
    two_hundred_nodes(m, [&](ggml_tensor * t) {
        const float beta = 0.5f;
        return m.node(op, {t}, &beta, sizeof(beta));
    });
    m.allocate();
}

} // namespace

void bench_modules() {
    const std::string      reason = no_compiler();
    ggml_ext_cuda_module * handle = nullptr;
    if (reason.empty()) {
        REQUIRE_OK(compile(kernels_text().data(), &handle));
    } else {
        REQUIRE_OK(ggml_ext_cuda_module_load(attached_gpu(), kernels_fat_binary().data(), kernels_fat_binary().size(), &handle));
    }
    const cuda_module module(handle);
    registration      linked_op, module_op, linked_kernel, modules_kernel;
    module_kernel     state;
    state.module = module.get();
    REQUIRE_OK(register_swish(linked_op, "test.swish.linked.v1"));
    REQUIRE_OK(register_swish(module_op, "test.swish.module.v1"));
    register_linked(linked_kernel, "test.swish.linked.v1");
    register_module_kernel(modules_kernel, "test.swish.module", "test.swish.module.v1", state, execute_module_swish);
    model native, linked, of_module;
    two_hundred_nodes(native, [&](ggml_tensor * t) { return native.g.ggml_silu(native.ctx, t); });
    native.allocate();
    build(linked, "test.swish.linked.v1");
    build(of_module, "test.swish.module.v1");
    for (model * m : {&native, &linked, &of_module}) {
        m->fill();
    }
    std::vector<figures> own, a, b;
    for (int i = 0; i < 15; ++i) {
        own.push_back(measure(native, 100));
        a.push_back(measure(linked, 100));
        b.push_back(measure(of_module, 100));
    }
    std::printf("\n200 nodes, 20 of them swish [128, 8, 16], plans recorded, in turn, medians of 15, us\n| %-44s | %9s | %9s | %6s |\n", "what", "step",
                "submit", "ratio");
    const figures base = median(own);
    print("ggml's own graph, SILU instead", base, base.step);
    print("linked into the program, cudaLaunchKernelEx", median(a), base.step);
    print(reason.empty() ? "source text by NVRTC, ggml_ext_cuda_launch" : "fat binary, ggml_ext_cuda_launch", median(b), base.step);
    std::printf("  recorded %llu and %llu, replayed %llu and %llu%s%s\n", static_cast<unsigned long long>(linked.stats().n_recorded),
                static_cast<unsigned long long>(of_module.stats().n_recorded), static_cast<unsigned long long>(linked.stats().n_replayed),
                static_cast<unsigned long long>(of_module.stats().n_replayed), reason.empty() ? "" : "; no NVRTC: ", reason.c_str());
}

} // namespace ggml_ext::test
