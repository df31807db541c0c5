// ROT-1: what comes before sd.quantize_i8_convrot.v1 with a group of 256, in one pass with it:
//   SCALE                  -> ConvRot
//   RMS_NORM -> MUL(weight) -> ConvRot
//   GLU (SwiGLU; packed, packed and swapped, or separate) -> ConvRot

#include "library.h"

#include <utility>

namespace cuda_ops {

namespace {

constexpr size_t  ALIGNMENT      = 16; // of pointers and strides of the kernel's inputs
constexpr int64_t LARGEST_NORM_K = 32768;

using fused_args = ggml_ext_cuda_convrot_fused_args;

bool is_convrot_of(const ggml_ext_node * node, const ggml_ext_tensor & from) {
    if (!is_op(node, GGML_EXT_OP_QUANTIZE_I8_CONVROT) || node->src[0]->tensor != from.tensor) {
        return refuse("no ConvRot of the result follows");
    }
    ggml_ext_quantize_i8_convrot_attrs attrs;
    std::memcpy(&attrs, node->attrs, sizeof(attrs));
    return attrs.group == 256 ? fits_grid(from) : refuse("the group is %d, expected 256", attrs.group);
}

bool read_rows(const ggml_ext_tensor & t, const float *& data, size_t & stride) {
    stride = is_f32(&t) ? row_stride(t) : 0;
    data   = floats(&t);
    return (stride != 0 && stride % ALIGNMENT == 0 && is_aligned(t, ALIGNMENT)) ||
           refuse("the input is not F32 with evenly spaced rows, aligned to %zu bytes", ALIGNMENT);
}

bool read_scale(const ggml_ext_node & node, fused_args & args) {
    args.source = GGML_EXT_CUDA_CONVROT_SCALE;
    args.scale  = param_f32(node, 0);
    return (param_f32(node, 1) == 0.0f || refuse("SCALE adds %g", static_cast<double>(param_f32(node, 1)))) &&
           read_rows(*node.src[0], args.a, args.a_stride);
}

bool read_norm(const ggml_ext_node & norm, const ggml_ext_node & mul, fused_args & args) {
    const int64_t           K = norm.dst->ne[0];
    const ggml_ext_tensor * w = source(mul, 1);
    args.source               = GGML_EXT_CUDA_CONVROT_RMS_NORM;
    args.eps                  = param_f32(norm, 0);
    args.weight               = floats(w);
    if (K > LARGEST_NORM_K || !(args.eps >= 0)) {
        return refuse("rows of %lld with eps %g, expected at most %lld and at least 0", static_cast<long long>(K), static_cast<double>(args.eps),
                      static_cast<long long>(LARGEST_NORM_K));
    }
    return ((is_vector_weight(w, K) && is_aligned(*w, ALIGNMENT)) ||
            refuse("the weight is no kept F32 vector of %lld elements, aligned to %zu bytes", static_cast<long long>(K), ALIGNMENT)) &&
           read_rows(*norm.src[0], args.a, args.a_stride);
}

bool read_swiglu(const ggml_ext_node & node, fused_args & args) {
    args.source = GGML_EXT_CUDA_CONVROT_SWIGLU;
    if (!is_function(node, "SWIGLU")) {
        return refuse("the gate is %s, not SWIGLU", node.function);
    }
    if (!read_rows(*node.src[0], args.a, args.a_stride)) {
        return false;
    }
    if (const ggml_ext_tensor * gate = source(node, 1)) {
        return read_rows(*gate, args.b, args.b_stride);
    }
    const int64_t half = node.dst->ne[0];
    args.b             = args.a == nullptr ? nullptr : args.a + half;
    args.b_stride      = args.a_stride;
    if (param_i32(node, 1) != 0) {
        std::swap(args.a, args.b);
    }
    return half % 4 == 0 || refuse("half a row is %lld floats, expected a multiple of 4", static_cast<long long>(half));
}

// What stands before the last node of a group.
bool read_source(const ggml_ext_node * const * nodes, int32_t n_nodes, fused_args & args) {
    const ggml_ext_node & first = *nodes[0];
    if (n_nodes == 3) {
        return read_norm(first, *nodes[1], args);
    }
    return is_op(&first, "SCALE") ? read_scale(first, args) : read_swiglu(first, args);
}

int32_t match(const ggml_ext_graph * graph, int32_t first, void *) {
    const ggml_ext_node * nodes[] = {ggml_ext_graph_node(graph, first), ggml_ext_graph_node(graph, first + 1),
                                     ggml_ext_graph_node(graph, first + 2)};
    const bool            is_norm = is_op(nodes[0], "RMS_NORM");
    const int32_t         n       = is_norm ? 3 : 2;
    if (is_norm && (!is_op(nodes[1], "MUL") || source(*nodes[1], 0)->tensor != nodes[0]->dst->tensor)) {
        return refuse("no MUL of the norm follows");
    }
    fused_args args{};
    return is_convrot_of(nodes[n - 1], *nodes[n - 2]->dst) && read_source(nodes, n, args) ? n : 0;
}

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void *) {
    const ggml_ext_tensor & x = *params->nodes[params->n_nodes - 1]->src[0];
    out->workspace_size       = ggml_ext_cuda_convrot_fused_workspace_size(rows(x), x.ne[0]);
    return GGML_EXT_STATUS_SUCCESS;
}

int execute(const ggml_ext_exec_params * params, void * user_data) {
    const ggml_ext_node &   last = *params->nodes[params->n_nodes - 1];
    const ggml_ext_tensor & x    = *last.src[0]; // its shape alone: nothing was written to it
    fused_args              args{};
    void *                  stream = nullptr;
    if (!read_source(params->nodes, params->n_nodes, args)) {
        return GGML_EXT_STATUS_FAILED;
    }
    if (const int status = stream_of(*params, *static_cast<const device *>(user_data), stream); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    auto * out       = static_cast<char *>(last.dst->data);
    args.M           = rows(x);
    args.K           = x.ne[0];
    args.padded_rows = ggml_ext_cuda_convrot_padded_rows(args.M);
    args.q           = reinterpret_cast<int8_t *>(out);
    args.q_stride    = static_cast<size_t>(args.K);
    args.out_scale   = reinterpret_cast<float *>(out + ggml_ext_cuda_convrot_scale_offset(args.M, args.K));
    return status_of(ggml_ext_cuda_convrot_fused(&args, params->workspace, params->workspace_size, stream));
}

void register_rule(registrar & r, const char * name, const char * op) {
    ggml_ext_kernel_desc desc{};
    desc.name    = name;
    desc.op      = op;
    desc.match   = match;
    desc.prepare = prepare;
    desc.execute = execute;
    r.kernel(desc);
}

} // namespace

void register_convrot_fused(registrar & r) {
    register_rule(r, "cuda.scale_convrot", "SCALE");
    register_rule(r, "cuda.rms_norm_convrot", "RMS_NORM");
    register_rule(r, "cuda.swiglu_convrot", "GLU");
}

} // namespace cuda_ops
