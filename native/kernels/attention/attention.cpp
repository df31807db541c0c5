#include "arguments.h"
#include "kernel.h"

#include <cmath>

namespace {

constexpr int64_t LEAST_QUERIES = 24; // of a part: below, the packing of keys and values weighs more than their use

bool aligned(const void * p, const ggml_ext_cpu_attention_strides & s, size_t element) {
    return (bytes_of(p) | s.row | s.head | s.batch) % element == 0;
}

bool valid(const ggml_ext_cpu_attention_args & a, int ith, int nth) {
    const bool extents = extents_ok(a.queries, a.heads, a.batches, a.d_k) && extents_ok(a.queries, a.heads, a.batches, a.d_v) &&
                         extents_ok(a.keys, a.kv_heads, a.kv_batches, a.d_k) && extents_ok(a.keys, a.kv_heads, a.kv_batches, a.d_v) &&
                         a.heads % a.kv_heads == 0 && a.batches % a.kv_batches == 0;
    const bool   types  = a.kv_type == GGML_EXT_CPU_ATTENTION_F32 || a.kv_type == GGML_EXT_CPU_ATTENTION_F16;
    const size_t kv     = a.kv_type == GGML_EXT_CPU_ATTENTION_F16 ? sizeof(uint16_t) : sizeof(float);
    const bool   places = aligned(a.q, a.q_stride, sizeof(float)) && aligned(a.k, a.k_stride, kv) && aligned(a.v, a.v_stride, kv) &&
                        aligned(a.dst, a.dst_stride, sizeof(float));
    const bool mask = a.mask == nullptr || (a.mask_heads >= 1 && a.mask_batches >= 1 && a.max_bias >= 0 &&
                                            aligned(a.mask, a.mask_stride, sizeof(uint16_t)));
    return extents && types && places && mask && a.q && a.k && a.v && a.dst && thread_ok(ith, nth);
}

// As ggml_compute_forward_flash_attn_ext has it.
float slope_of(const ggml_ext_cpu_attention_args & a, int64_t head) {
    if (a.mask == nullptr || a.max_bias == 0) {
        return 1;
    }
    int64_t power = 1;
    while (2 * power <= a.heads) {
        power *= 2;
    }
    const float n = static_cast<float>(power);
    return head < power ? powf(powf(2.0f, -a.max_bias / n), static_cast<float>(head + 1))
                        : powf(powf(2.0f, -a.max_bias / 2 / n), static_cast<float>(2 * (head - power) + 1));
}

// Parts of equal size that a head's queries are cut into: enough to occupy all threads, few enough to be worth their packing.
int64_t parts_of(const ggml_ext_cpu_attention_args & a, int nth) {
    const int64_t fewest = (a.queries + ATTENTION_QUERIES - 1) / ATTENTION_QUERIES;
    const int64_t most   = a.queries < LEAST_QUERIES ? 1 : a.queries / LEAST_QUERIES;
    const int64_t heads  = a.heads * a.batches;
    int64_t       parts  = fewest;
    while (parts < most && heads * parts < 4 * int64_t{nth} && heads * parts % nth != 0) {
        parts++;
    }
    return parts;
}

} // namespace

size_t ggml_ext_cpu_attention_scratch_size(int64_t d_k, int64_t d_v) {
    return d_k < 1 || d_v < 1 ? 0 : GGML_EXT_SELECT(attention).scratch_size(d_k, d_v);
}

int ggml_ext_cpu_attention(
    const struct ggml_ext_cpu_attention_args * args, void * scratch, size_t scratch_size, int ith, int nth) {
    if (!args || !scratch || !float_aligned(scratch) || !valid(*args, ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (scratch_size < ggml_ext_cpu_attention_scratch_size(args->d_k, args->d_v)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    const attention_kernels & kernels = GGML_EXT_SELECT(attention);
    const int64_t             parts   = parts_of(*args, nth);
    const range               mine    = share(args->batches * args->heads * parts, ith, nth);
    for (int64_t i = mine.begin; i < mine.end; i++) {
        attention_part part;
        part.queries = share(args->queries, i % parts, parts);
        part.head    = i / parts % args->heads;
        part.batch   = i / parts / args->heads;
        part.slope   = slope_of(*args, part.head);
        kernels.run(*args, part, static_cast<float *>(scratch));
    }
    return GGML_EXT_CPU_OK;
}
