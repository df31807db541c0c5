// NORM -> MUL(weight [n]) -> ADD(shift [n]), and the same after ADD(x, residual), in one pass over the rows.

#include "ggml-ext-kernels/rows.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

bool reads(const ggml_ext_node * node, const char * op, const ggml_ext_node * before) {
    return is_op(node, op) && source(*node, 0)->tensor == before->dst->tensor;
}

// The three nodes from NORM on. With two rows or more the output's layout is none that could take the shift's place.
bool is_layer_norm(const ggml_ext_graph * graph, int32_t first) {
    const ggml_ext_node * norm = ggml_ext_graph_node(graph, first);
    const ggml_ext_node * mul  = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_node * add  = ggml_ext_graph_node(graph, first + 2);
    if (!is_op(norm, "NORM") || !reads(mul, "MUL", norm) || !reads(add, "ADD", mul)) {
        return refuse("no NORM -> MUL -> ADD");
    }
    const ggml_ext_tensor & x = *norm->src[0];
    if (!is_f32(&x) || row_stride(x) == 0 || rows(x) < 2 || !is_f32(add->dst) || !contiguous(*add->dst)) {
        return refuse("the input is not F32 with evenly spaced rows, at least two, or the output not contiguous");
    }
    if (!is_vector_weight(source(*mul, 1), x.ne[0]) || !is_vector_weight(source(*add, 1), x.ne[0])) {
        return refuse("weight or shift is no kept F32 vector of %lld elements", static_cast<long long>(x.ne[0]));
    }
    return param_f32(*norm, 0) >= 0 || refuse("eps is %g", static_cast<double>(param_f32(*norm, 0)));
}

int32_t match(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    return is_layer_norm(graph, first) ? 3 : 0;
}

int32_t match_residual(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    const ggml_ext_node *   sum      = ggml_ext_graph_node(graph, first);
    const ggml_ext_node *   norm     = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_tensor * x        = source(*sum, 0);
    const ggml_ext_tensor * residual = source(*sum, 1);
    if (norm == nullptr || !reads(norm, "NORM", sum)) {
        return refuse("no NORM of the sum follows");
    }
    if (!is_f32(x) || !is_f32(residual) || !same_shape(*x, *residual) || row_stride(*x) == 0 || row_stride(*residual) == 0) {
        return refuse("the summands are not F32 of one shape with evenly spaced rows");
    }
    return is_layer_norm(graph, first + 1) ? 4 : 0;
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node * const * norm   = params->nodes + (params->n_nodes - 3);
    const ggml_ext_node &         first  = *params->nodes[0];
    const bool                    summed = params->n_nodes == 4;
    const ggml_ext_tensor &       x      = *first.src[0];
    const ggml_ext_tensor &       dst    = *norm[2]->dst;
    ggml_ext_cpu_layer_norm_args  args{};
    args.rows            = rows(x);
    args.n               = x.ne[0];
    args.x               = floats(&x);
    args.x_stride        = row_stride(x);
    args.residual        = summed ? floats(first.src[1]) : nullptr;
    args.residual_stride = summed ? row_stride(*first.src[1]) : 0;
    args.weight          = floats(norm[1]->src[1]);
    args.bias            = floats(norm[2]->src[1]);
    args.eps             = param_f32(*norm[0], 0);
    args.dst             = static_cast<float *>(dst.data);
    args.dst_stride      = static_cast<size_t>(x.ne[0]) * sizeof(float);
    return status_of(ggml_ext_cpu_layer_norm(&args, ith, nth));
}

} // namespace

void register_layer_norm(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.run   = run;
    desc.name  = "cpu.layer_norm";
    desc.op    = "NORM";
    desc.match = match;
    r.kernel(desc);
    desc.name  = "cpu.add_layer_norm";
    desc.op    = "ADD";
    desc.match = match_residual;
    r.kernel(desc);
}

} // namespace cpu_ops
