// I8-1: sd.linear_i8.v1(W, X, [W_scale], [X_scale], [bias]), alone or with the UNARY(GELU_ERF) that reads it,
// reshaped or not.
// Phase 0 packs the weight, but for few rows, and brings activations, scales and bias into the workspace where the output overlaps them; phase 1
// multiplies. F32 activations are quantised in phase 0.

#include "chunks.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "linear.h"
#include "registrations.h"

#include <new>

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    linear l;
    return read_linear(node->n_src, node->src, node->attrs, l) ? 1 : 0;
}

int32_t match_gelu(const ggml_ext_graph * graph, int32_t first, void * user_data) {
    const ggml_ext_node *   product = ggml_ext_graph_node(graph, first);
    const ggml_ext_node *   gelu    = ggml_ext_graph_node(graph, first + 1);
    const ggml_ext_tensor * x       = product->dst;
    int32_t                 count   = 2;
    for (; is_op(gelu, "RESHAPE") && source(*gelu, 0)->tensor == x->tensor; ++count) { // the same bytes: a packed X has lost the sizes of its batches
        x    = gelu->dst;
        gelu = ggml_ext_graph_node(graph, first + count);
    }
    if (!is_unary_of(gelu, "GELU_ERF", *x)) {
        return refuse("no GELU_ERF of the product follows");
    }
    if (!is_f32(gelu->dst) || !contiguous(*gelu->dst)) {
        return refuse("the output of GELU_ERF is not contiguous F32");
    }
    return supports(product, user_data) == 1 ? count : 0;
}

// The workspace: rows of int8, their scales, copies of X_scale, W_scale and bias, the queue, then each thread's scratch.
struct layout {
    size_t x_scale, x_scale_copy, w_scale, bias, queue, shared, each;

    explicit layout(const linear & l) {
        x_scale      = aligned(static_cast<size_t>(l.M * l.K));
        x_scale_copy = x_scale + aligned(static_cast<size_t>(l.M) * sizeof(float));
        w_scale      = x_scale_copy + (l.x_scale ? aligned(l.x_scale->nbytes) : 0);
        bias         = w_scale + (l.w_scale ? aligned(l.w_scale->nbytes) : 0);
        queue        = bias + (l.bias ? aligned(l.bias->nbytes) : 0);
        shared       = queue + chunk_queue::size();
        each         = std::max(ggml_ext_cpu_gemm_i8_scratch_size(l.M, l.N, l.K), ggml_ext_cpu_quantize_i8_scratch_size(l.K, 1));
    }
};

struct state {
    linear      l;
    weight_slot weight;
};

const ggml_ext_tensor & output_of(const ggml_ext_exec_params & params) { return *params.nodes[params.n_nodes - 1]->dst; }

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    const ggml_ext_node & node = *params->nodes[0];
    auto *                s    = new (std::nothrow) state;
    if (s == nullptr) {
        return GGML_EXT_STATUS_NO_MEMORY;
    }
    read_linear(node.n_src, node.src, node.attrs, s->l); // as supports has found it
    const layout place(s->l);
    out->state    = s;
    out->n_phases = 2;
    want_workspace(*out, place.shared, place.each);
    return GGML_EXT_STATUS_SUCCESS;
}

void destroy(void * s, void * /* user_data */) {
    delete static_cast<state *>(s);
}

// The small vector `t`, or its copy where the output overlaps it.
const float * vector_of(const ggml_ext_tensor * t, const ggml_ext_tensor & dst, char * copy) {
    return t == nullptr ? nullptr : overlap(*t, dst) ? reinterpret_cast<const float *>(copy)
                                                     : floats(t);
}

void copy_vector(const ggml_ext_tensor * t, const ggml_ext_tensor & dst, char * copy) {
    if (t != nullptr && overlap(*t, dst)) {
        std::memcpy(copy, t->data, t->nbytes);
    }
}

// A few rows are multiplied by the weight itself, and what it would take to pack it, or to see that it is packed, is saved.
bool reads_unpacked(const linear & l, const ggml_ext_tensor & dst) {
    return l.M <= ggml_ext_cpu_gemm_i8_unpacked_rows() && !overlap(*l.w, dst);
}

int bring_activations(const ggml_ext_exec_params & params, const linear & l, const layout & place, int32_t ith, int32_t nth) {
    auto * workspace = static_cast<char *>(params.workspace);
    if (l.x->type == TYPE_F32) {
        ggml_ext_cpu_quantize_i8_args args{};
        args.M           = l.M;
        args.K           = l.K;
        args.group       = 1;
        args.padded_rows = l.M;
        args.x           = floats(l.x);
        args.x_stride    = row_stride(*l.x);
        args.q           = reinterpret_cast<int8_t *>(workspace);
        args.q_stride    = static_cast<size_t>(l.K);
        args.scale       = reinterpret_cast<float *>(workspace + place.x_scale);
        return ggml_ext_cpu_quantize_i8(&args, scratch_of(params, place.shared, place.each, ith), place.each, ith, nth);
    }
    if (overlap(*l.x, output_of(params))) {
        const auto   row    = static_cast<size_t>(l.K);
        const size_t stride = l.packed ? row : row_stride(*l.x);
        for (int64_t m = l.M * ith / nth; m < l.M * (ith + 1) / nth; ++m) {
            std::memcpy(workspace + static_cast<size_t>(m) * row, static_cast<const char *>(l.x->data) + static_cast<size_t>(m) * stride, row);
        }
        if (l.packed && ith == 0) {
            std::memcpy(workspace + place.x_scale, static_cast<const char *>(l.x->data) + ggml_ext_cpu_convrot_scale_offset(l.M, l.K),
                        static_cast<size_t>(l.M) * sizeof(float));
        }
    }
    return GGML_EXT_CPU_OK;
}

int multiply(const ggml_ext_exec_params & params, const state & s, const layout & place, int32_t ith, int32_t nth) {
    const linear &          l         = s.l;
    const ggml_ext_tensor & dst       = output_of(params);
    auto *                  workspace = static_cast<char *>(params.workspace);
    const bool              brought   = l.x->type == TYPE_F32 || overlap(*l.x, dst);
    const char *            x         = static_cast<const char *>(l.x->data);

    ggml_ext_cpu_gemm_i8_args args{};
    args.M = l.M;
    args.N = l.N;
    args.K = l.K;
    if (reads_unpacked(l, dst)) {
        args.w        = static_cast<const int8_t *>(l.w->data);
        args.w_stride = row_stride(*l.w);
    } else {
        args.packed      = s.weight.get().data();
        args.packed_size = s.weight.get().size();
    }
    args.x        = reinterpret_cast<const int8_t *>(brought ? workspace : x);
    args.x_stride = brought || l.packed ? static_cast<size_t>(l.K) : row_stride(*l.x);
    args.x_scales = l.x_scale != nullptr ? elements(*l.x_scale) : l.M;
    if (brought && (l.packed || l.x->type == TYPE_F32)) {
        args.x_scale = reinterpret_cast<const float *>(workspace + place.x_scale);
    } else if (l.packed) {
        args.x_scale = reinterpret_cast<const float *>(x + ggml_ext_cpu_convrot_scale_offset(l.M, l.K));
    } else {
        args.x_scale = vector_of(l.x_scale, dst, workspace + place.x_scale_copy);
    }
    args.w_scale    = vector_of(l.w_scale, dst, workspace + place.w_scale);
    args.w_scales   = l.w_scale != nullptr ? elements(*l.w_scale) : l.N;
    args.bias       = vector_of(l.bias, dst, workspace + place.bias);
    args.activation = params.n_nodes > 1 ? GGML_EXT_CPU_ACT_GELU_ERF : GGML_EXT_CPU_ACT_NONE;
    args.dst        = static_cast<float *>(dst.data);
    args.dst_stride = static_cast<size_t>(l.N) * sizeof(float);
    void * scratch  = scratch_of(params, place.shared, place.each, ith);
    return chunk_queue(workspace + place.queue).drain(chunks_each(l.M, LEAST_CHUNK_ROWS, nth), ith, nth, [&](int32_t chunk, int32_t chunks) {
        return ggml_ext_cpu_gemm_i8(&args, scratch, place.each, chunk, chunks);
    });
}

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * user_data) {
    auto &       s = *static_cast<state *>(params->state);
    const layout place(s.l);
    if (phase == 1) {
        return status_of(multiply(*params, s, place, ith, nth));
    }
    chunk_queue(static_cast<char *>(params->workspace) + place.queue).restart(ith);
    try {
        const int status = reads_unpacked(s.l, output_of(*params)) ? GGML_EXT_CPU_OK : s.weight.update(weights_of(user_data), *s.l.w, ith, nth);
        if (status != GGML_EXT_CPU_OK) {
            return status_of(status);
        }
    } catch (const std::bad_alloc &) {
        refuse("no memory for the packed copy of W, [%lld, %lld]", static_cast<long long>(s.l.K), static_cast<long long>(s.l.N));
        return GGML_EXT_STATUS_NO_MEMORY;
    }
    if (ith == 0) {
        auto * workspace = static_cast<char *>(params->workspace);
        copy_vector(s.l.x_scale, output_of(*params), workspace + place.x_scale_copy);
        copy_vector(s.l.w_scale, output_of(*params), workspace + place.w_scale);
        copy_vector(s.l.bias, output_of(*params), workspace + place.bias);
    }
    return status_of(bring_activations(*params, s.l, place, ith, nth));
}

// the shared check's bound is that of the kernel
static_assert(LINEAR_I8_MAX_K == GGML_EXT_CPU_GEMM_I8_MAX_K);

} // namespace

void register_linear_i8(registrar & r, const shared_weights & weights) {
    r.op(GGML_EXT_OP_LINEAR_I8, sizeof(ggml_ext_linear_i8_attrs), infer_linear);

    ggml_ext_kernel_desc desc{};
    desc.name     = "cpu.linear_i8";
    desc.op       = GGML_EXT_OP_LINEAR_I8;
    desc.supports = supports;
    desc.prepare  = prepare;
    desc.run      = run;
    desc.destroy  = destroy;
    r.kernel(desc, weights);

    desc.name     = "cpu.linear_i8_gelu_erf";
    desc.supports = nullptr;
    desc.match    = match_gelu;
    r.kernel(desc, weights);
}

} // namespace cpu_ops
