// GEMM-1: MUL_MAT of an F32 weight [K, N] and F32 activations [K, M, ...], over a packed copy of the weight.

#include "ggml-ext-kernels/gemm_f32.h"
#include "product_f32.h"
#include "registrations.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    return supports_product_f32(*node);
}

int32_t preferred(const ggml_ext_node * node, void * /* user_data */) {
    return prefers_product_f32(*node);
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    return run_product_f32(*params, *params->nodes[0]->dst, nullptr, GGML_EXT_CPU_ACT_NONE, phase, ith, nth, weights_of(user_data));
}

} // namespace

void register_mul_mat(registrar & r, const shared_weights & weights) {
    ggml_ext_kernel_desc desc{};
    desc.name      = "cpu.mul_mat_f32";
    desc.op        = "MUL_MAT";
    desc.supports  = supports;
    desc.preferred = preferred;
    desc.prepare   = prepare_product_f32;
    desc.run       = run;
    desc.destroy   = destroy_product_f32;
    r.kernel(desc, weights);
}

} // namespace cpu_ops
