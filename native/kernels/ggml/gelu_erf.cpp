// UNARY(GELU_ERF) of contiguous F32. The output may take the input's place.

#include "ggml-ext-kernels/rows.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    const ggml_ext_tensor * x = source(*node, 0);
    if (!is_function(*node, "GELU_ERF")) {
        return refuse("the function is %s, not GELU_ERF", node->function);
    }
    if (!is_f32(x) || !is_f32(node->dst) || !contiguous(*x) || !contiguous(*node->dst) || !same_shape(*x, *node->dst)) {
        return refuse("input and output are not contiguous F32 of one shape");
    }
    return 1;
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node & node = *params->nodes[0];
    return status_of(ggml_ext_cpu_gelu_erf(elements(*node.dst), floats(node.src[0]), static_cast<float *>(node.dst->data), ith, nth));
}

} // namespace

void register_gelu_erf(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.gelu_erf";
    desc.op       = "UNARY";
    desc.supports = supports;
    desc.run      = run;
    r.kernel(desc);
}

} // namespace cpu_ops
