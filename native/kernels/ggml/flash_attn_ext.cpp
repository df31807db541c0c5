// FLASH_ATTN_EXT of F32 queries over keys and values of F32 or F16.

#include "chunks.h"
#include "ggml-ext-kernels/attention.h"
#include "registrations.h"

namespace cpu_ops {

namespace {

// Below, ggml's own is as fast: packing a block of keys and values for few queries costs as much as it gains (measured: bench/).
constexpr int64_t LEAST_QUERIES     = 4;
constexpr int64_t LEAST_QUERIES_F16 = 8; // of keys and values, which are converted as well

constexpr int64_t CHUNK_HEADS = 2; // at least

bool is_f32_or_f16(const ggml_ext_tensor * t) { return t != nullptr && (t->type == TYPE_F32 || t->type == TYPE_F16); }

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    const ggml_ext_tensor * q    = source(*node, 0);
    const ggml_ext_tensor * k    = source(*node, 1);
    const ggml_ext_tensor * v    = source(*node, 2);
    const ggml_ext_tensor * mask = source(*node, 3);
    if (!is_f32(q) || !is_f32_or_f16(k) || !is_f32_or_f16(v) || k->type != v->type || !is_f32(node->dst)) {
        return refuse("q is not F32, or k and v are not both F32 or both F16");
    }
    if (!dense_rows(*q) || !dense_rows(*k) || !dense_rows(*v) || !contiguous(*node->dst)) {
        return refuse("q, k or v has gaps inside its rows or overlaps, or the output is not contiguous");
    }
    if (q->ne[0] != k->ne[0] || v->ne[1] != k->ne[1] || v->ne[2] != k->ne[2] || v->ne[3] != k->ne[3] || q->ne[2] % k->ne[2] != 0 ||
        q->ne[3] % k->ne[3] != 0 || node->dst->ne[0] != v->ne[0] || node->dst->ne[1] != q->ne[2] || node->dst->ne[2] != q->ne[1] ||
        node->dst->ne[3] != q->ne[3]) {
        return refuse("the shapes are not those of attention with as many heads of k as of v");
    }
    if (param_f32(*node, 2) != 0 || source(*node, 4) != nullptr) {
        return refuse("sinks and the bound of the scores (softcap %g) are ggml's own", static_cast<double>(param_f32(*node, 2)));
    }
    if (!(param_f32(*node, 1) >= 0)) {
        return refuse("max_bias is %g, which ggml takes for 0", static_cast<double>(param_f32(*node, 1)));
    }
    if (mask != nullptr && (mask->type != TYPE_F16 || !contiguous(*mask) || mask->ne[0] != k->ne[1] || mask->ne[1] < q->ne[1])) {
        return refuse("the mask is not contiguous F16 of %lld keys for each query", static_cast<long long>(k->ne[1]));
    }
    return 1;
}

int32_t preferred(const ggml_ext_node * node, void * /* user_data */) {
    const int64_t queries = node->src[0]->ne[1];
    const int64_t least   = node->src[1]->type == TYPE_F16 ? LEAST_QUERIES_F16 : LEAST_QUERIES;
    return queries >= least ? 1 : refuse("%lld queries, and ggml's own attention is as fast below %lld", static_cast<long long>(queries), static_cast<long long>(least));
}

size_t scratch_size(const ggml_ext_node & node) {
    return ggml_ext_cpu_attention_scratch_size(node.src[0]->ne[0], node.src[2]->ne[0]);
}

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    out->n_phases = 2;
    want_workspace(*out, chunk_queue::size(), scratch_size(*params->nodes[0]));
    return GGML_EXT_STATUS_SUCCESS;
}

ggml_ext_cpu_attention_strides strides(const ggml_ext_tensor & t) { return {t.nb[1], t.nb[2], t.nb[3]}; }

int run(const ggml_ext_exec_params * params, int32_t phase, int32_t ith, int32_t nth, void * /* user_data */) {
    chunk_queue queue(params->workspace);
    if (phase == 0) {
        queue.restart(ith);
        return GGML_EXT_STATUS_SUCCESS;
    }
    const ggml_ext_node &   node = *params->nodes[0];
    const ggml_ext_tensor & q    = *node.src[0];
    const ggml_ext_tensor & k    = *node.src[1];
    const ggml_ext_tensor & v    = *node.src[2];
    const ggml_ext_tensor * mask = source(node, 3);

    ggml_ext_cpu_attention_args args{};
    args.queries    = q.ne[1];
    args.keys       = k.ne[1];
    args.heads      = q.ne[2];
    args.kv_heads   = k.ne[2];
    args.batches    = q.ne[3];
    args.kv_batches = k.ne[3];
    args.d_k        = q.ne[0];
    args.d_v        = v.ne[0];
    args.q          = floats(&q);
    args.q_stride   = strides(q);
    args.kv_type    = k.type == TYPE_F16 ? GGML_EXT_CPU_ATTENTION_F16 : GGML_EXT_CPU_ATTENTION_F32;
    args.k          = k.data;
    args.k_stride   = strides(k);
    args.v          = v.data;
    args.v_stride   = strides(v);
    if (mask != nullptr) {
        args.mask         = static_cast<const uint16_t *>(mask->data);
        args.mask_heads   = mask->ne[2];
        args.mask_batches = mask->ne[3];
        args.mask_stride  = strides(*mask);
    }
    args.scale      = param_f32(node, 0);
    args.max_bias   = param_f32(node, 1);
    args.dst        = static_cast<float *>(node.dst->data);
    args.dst_stride = {node.dst->nb[2], node.dst->nb[1], node.dst->nb[3]};

    const size_t each    = scratch_size(node);
    void *       scratch = scratch_of(*params, chunk_queue::size(), each, ith);
    return status_of(queue.drain(chunks_each(args.heads * args.batches, CHUNK_HEADS, nth), ith, nth, [&](int32_t chunk, int32_t chunks) {
        return ggml_ext_cpu_attention(&args, scratch, each, chunk, chunks);
    }));
}

} // namespace

void register_flash_attn_ext(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name      = "cpu.flash_attn_ext";
    desc.op        = "FLASH_ATTN_EXT";
    desc.supports  = supports;
    desc.preferred = preferred;
    desc.prepare   = prepare;
    desc.run       = run;
    r.kernel(desc);
}

} // namespace cpu_ops
