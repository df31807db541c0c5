// MUL_MAT -> ADD(bias [N]) and MUL_MAT -> ADD(bias [N]) -> UNARY(GELU_ERF) as one product with an epilogue.

#include "ggml-ext-kernels/gemm_f32.h"
#include "product_f32.h"
#include "registrations.h"

namespace cpu_ops {

namespace {

// Number of nodes, 0 with a reason. Products with fewer rows than the override wants are left to ggml; with two rows or more the
// output's layout is none that could take the bias's place.
int32_t match_bias(const ggml_ext_graph * graph, int32_t first) {
    const ggml_ext_node * product = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * add     = ggml_ext_graph_node(graph, first + 1);
    if (!is_op(add, "ADD") || source(*add, 0)->tensor != product->dst->tensor) {
        return refuse("no ADD to the product follows");
    }
    if (!is_vector_weight(source(*add, 1), product->dst->ne[0])) {
        return refuse("what is added is no kept F32 vector of %lld elements", static_cast<long long>(product->dst->ne[0]));
    }
    return supports_product_f32(*product) == 1 && prefers_product_f32(*product) == 1 ? 2 : 0;
}

int32_t match_bias_only(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    return match_bias(graph, first);
}

int32_t match_bias_gelu(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    const ggml_ext_node * gelu = ggml_ext_graph_node(graph, first + 2);
    if (match_bias(graph, first) == 0) {
        return 0;
    }
    if (!is_unary_of(gelu, "GELU_ERF", *ggml_ext_graph_node(graph, first + 1)->dst)) {
        return refuse("no GELU_ERF of the sum follows");
    }
    return is_f32(gelu->dst) && contiguous(*gelu->dst) ? 3 : refuse("the output of GELU_ERF is not contiguous F32");
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    const int activation = params->n_nodes == 3 ? GGML_EXT_CPU_ACT_GELU_ERF : GGML_EXT_CPU_ACT_NONE;
    return run_product_f32(*params, *params->nodes[params->n_nodes - 1]->dst, floats(params->nodes[1]->src[1]), activation, phase, ith, nth,
                           weights_of(user_data));
}

} // namespace

void register_mul_mat_bias(registrar & r, const shared_weights & weights) {
    ggml_ext_kernel_desc desc{};
    desc.op      = "MUL_MAT";
    desc.prepare = prepare_product_f32;
    desc.run     = run;
    desc.destroy = destroy_product_f32;
    desc.name    = "cpu.mul_mat_bias";
    desc.match   = match_bias_only;
    r.kernel(desc, weights);
    desc.name  = "cpu.mul_mat_bias_gelu_erf";
    desc.match = match_bias_gelu;
    r.kernel(desc, weights);
}

} // namespace cpu_ops
