#include "product_f32.h"

#include "chunks.h"
#include "ggml-ext-kernels/gemm_f32.h"

#include <new>

namespace cpu_ops {

namespace {

// Below, ggml's own product is as fast: fewer rows than this over a weight in cache, or from memory (measured: bench/).
constexpr int64_t LEAST_ROWS       = 4;
constexpr int64_t LEAST_ROWS_LARGE = 16;
constexpr size_t  LARGE            = size_t{8} << 20; // bytes

// All rows where they follow each other evenly, else those of a plane.
int64_t rows_at_once(const ggml_ext_tensor & x) {
    return row_stride(x) != 0 ? rows(x) : x.ne[1];
}

size_t scratch_size(const ggml_ext_node & mul_mat) {
    return ggml_ext_cpu_gemm_f32_scratch_size(rows_at_once(*mul_mat.src[1]), mul_mat.src[0]->ne[1], mul_mat.src[0]->ne[0]);
}

} // namespace

int32_t supports_product_f32(const ggml_ext_node & node) {
    const ggml_ext_tensor * w = source(node, 0);
    const ggml_ext_tensor * x = source(node, 1);
    if (!is_f32(w) || !is_f32(x) || !is_f32(node.dst)) {
        return refuse("the types are not all F32");
    }
    if (!is_weight(*w)) {
        return refuse("the weight is computed, a view, an input, a parameter or a copy: its packed copy could not be kept");
    }
    if (w->ne[2] != 1 || w->ne[3] != 1 || !dense_rows(*w)) {
        return refuse("the weight is no matrix of dense rows");
    }
    if (x->ne[0] != w->ne[0] || node.dst->ne[0] != w->ne[1] || node.dst->ne[1] != x->ne[1] || node.dst->ne[2] != x->ne[2] ||
        node.dst->ne[3] != x->ne[3]) {
        return refuse("the shapes are not those of a product");
    }
    if (!dense_rows(*x) || !contiguous(*node.dst)) {
        return refuse("the activations have gaps inside their rows or overlap, or the output is not contiguous");
    }
    return 1;
}

int32_t prefers_product_f32(const ggml_ext_node & node) {
    const int64_t m     = rows(*node.src[1]);
    const int64_t least = node.src[0]->nbytes > LARGE ? LEAST_ROWS_LARGE : LEAST_ROWS;
    return m >= least ? 1 : refuse("%lld rows, and ggml's own product is as fast below %lld", static_cast<long long>(m), static_cast<long long>(least));
}

int prepare_product_f32(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    out->state = new (std::nothrow) weight_slot;
    if (out->state == nullptr) {
        return GGML_EXT_STATUS_NO_MEMORY;
    }
    out->n_phases = 2;
    want_workspace(*out, chunk_queue::size(), scratch_size(*params->nodes[0]));
    return GGML_EXT_STATUS_SUCCESS;
}

void destroy_product_f32(void * state, void * /* user_data */) {
    delete static_cast<weight_slot *>(state);
}

int run_product_f32(const ggml_ext_exec_params & params, const ggml_ext_tensor & dst, const float * bias, int activation, int32_t phase,
                    int32_t ith, int32_t nth, weight_cache & weights) {
    auto &                  slot = *static_cast<weight_slot *>(params.state);
    const ggml_ext_tensor & w    = *params.nodes[0]->src[0];
    const ggml_ext_tensor & x    = *params.nodes[0]->src[1];
    chunk_queue             queue(params.workspace);
    if (phase == 0) {
        queue.restart(ith);
        try {
            return status_of(slot.update(weights, w, ith, nth));
        } catch (const std::bad_alloc &) {
            refuse("no memory for the packed copy of the weight, [%lld, %lld]", static_cast<long long>(w.ne[0]), static_cast<long long>(w.ne[1]));
            return GGML_EXT_STATUS_NO_MEMORY;
        }
    }

    const size_t               each    = scratch_size(*params.nodes[0]);
    void *                     scratch = scratch_of(params, chunk_queue::size(), each, ith);
    ggml_ext_cpu_gemm_f32_args args{};
    args.N           = w.ne[1];
    args.K           = w.ne[0];
    args.packed      = slot.get().data();
    args.packed_size = slot.get().size();
    args.bias        = bias;
    args.activation  = activation;
    args.dst_stride  = static_cast<size_t>(args.N) * sizeof(float);
    args.M           = rows_at_once(x);
    if (const size_t stride = row_stride(x); stride != 0) {
        args.x        = floats(&x);
        args.x_stride = stride;
        args.dst      = static_cast<float *>(dst.data);
        return status_of(queue.drain(chunks_each(args.M, LEAST_CHUNK_ROWS, nth), ith, nth, [&](int32_t chunk, int32_t chunks) {
            return ggml_ext_cpu_gemm_f32(&args, scratch, each, chunk, chunks);
        }));
    }
    args.x_stride = x.nb[1];
    for (int64_t plane = 0; plane < x.ne[2] * x.ne[3]; ++plane) {
        const size_t offset = static_cast<size_t>(plane % x.ne[2]) * x.nb[2] + static_cast<size_t>(plane / x.ne[2]) * x.nb[3];
        args.x              = reinterpret_cast<const float *>(static_cast<const char *>(x.data) + offset);
        args.dst            = static_cast<float *>(dst.data) + plane * args.M * args.N;
        if (const int status = ggml_ext_cpu_gemm_f32(&args, scratch, each, ith, nth); status != GGML_EXT_CPU_OK) {
            return status_of(status);
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace cpu_ops
