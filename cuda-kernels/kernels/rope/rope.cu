#include "kernel.cuh"
#include "status.h"

#include <algorithm>
#include <cmath>

using namespace ggml_ext_cuda;

namespace {

using kernel = void (*)(rope_params);

constexpr int     THREADS    = 256;
constexpr int64_t FEW_BLOCKS = 64; // of a GPU's multiprocessors most are idle then
constexpr int64_t MAX_CHUNKS = 65535; // blocks for one token's heads, along y

template <int V, int UNROLL> kernel rows_kernel(bool f16) {
    return f16 ? kernel(rope_rows<V, UNROLL, __half>) : kernel(rope_rows<V, UNROLL, float>);
}

kernel rows_kernel(int vectors, int unroll, bool f16) {
    if (vectors == 2) {
        return unroll == 1 ? rows_kernel<2, 1>(f16) : unroll == 2 ? rows_kernel<2, 2>(f16)
                                                                  : rows_kernel<2, 4>(f16);
    }
    return unroll == 1 ? rows_kernel<1, 1>(f16) : unroll == 2 ? rows_kernel<1, 2>(f16)
                                                              : rows_kernel<1, 4>(f16);
}

kernel any_kernel(bool f16) {
    return f16 ? kernel(rope_any<__half>) : kernel(rope_any<float>);
}

int invalid(const char * what, long long value, const char * expected) {
    return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rope: %s is %lld, expected %s", what, value, expected);
}

int validate_angles(const ggml_ext_cuda_rope_angles & a) {
    if (!a.positions || !aligned(a.positions, 4) || !aligned(a.freq_factors, 4)) {
        return invalid("positions or freq_factors", 0, "pointers aligned to 4 bytes");
    }
    if (!(a.freq_base > 0) || !(a.freq_scale > 0)) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rope: freq_base %g and freq_scale %g must be above 0",
                    static_cast<double>(a.freq_base), static_cast<double>(a.freq_scale));
    }
    if (a.ext_factor != 0 && (a.n_ctx_orig < 1 || !(a.beta_fast > 0) || !(a.beta_slow > 0))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "rope: YaRN needs n_ctx_orig, beta_fast and beta_slow above 0, got %d, %g and %g", a.n_ctx_orig,
                    static_cast<double>(a.beta_fast), static_cast<double>(a.beta_slow));
    }
    return GGML_EXT_CUDA_OK;
}

int validate(const ggml_ext_cuda_rope_args & a) {
    if (a.d_head < 1 || a.n_head < 1 || a.L < 1 || a.N < 1) {
        return invalid("the least of d_head, n_head, L, N", std::min({a.d_head, a.n_head, a.L, a.N}), "at least 1");
    }
    if (a.rot_first < 0 || a.rot_first % 2 != 0) {
        return invalid("rot_first", a.rot_first, "an even number of at least 0");
    }
    if (a.d_rot < 2 || a.d_rot % 2 != 0 || a.d_rot > a.d_head - a.rot_first) {
        return invalid("d_rot", a.d_rot, "an even number from 2 to d_head - rot_first");
    }
    if (a.d_rot > GGML_EXT_CUDA_ROPE_MAX_D_ROT || a.d_head > 0x40000000) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "rope: d_head %lld or d_rot %lld is above the largest (2^30 and %d)",
                    static_cast<long long>(a.d_head), static_cast<long long>(a.d_rot), GGML_EXT_CUDA_ROPE_MAX_D_ROT);
    }
    if (a.pairs != GGML_EXT_CUDA_ROPE_INTERLEAVED && a.pairs != GGML_EXT_CUDA_ROPE_SPLIT_HALF) {
        return invalid("pairs", a.pairs, "0 (interleaved) or 1 (split half)");
    }
    const size_t element = a.dst_f16 ? 2 : 4;
    if (!a.x || !a.dst || !aligned(a.x, 4) || !aligned(a.dst, element)) {
        return invalid("x or dst", 0, "pointers aligned to their elements");
    }
    if ((a.x_nb1 | a.x_nb2 | a.x_nb3) % 4 != 0 || (a.dst_nb1 | a.dst_nb2 | a.dst_nb3) % element != 0) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "rope: strides %zu %zu %zu of x and %zu %zu %zu of dst must be multiples of 4 and %zu", a.x_nb1,
                    a.x_nb2, a.x_nb3, a.dst_nb1, a.dst_nb2, a.dst_nb3, element);
    }
    if (a.norm && (!(a.eps >= 0) || !aligned(a.weight, 4))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rope: eps %g must be at least 0 and weight aligned to 4 bytes",
                    static_cast<double>(a.eps));
    }
    if (a.pe) {
        if (!aligned(a.pe, 4) || (a.pe_pair | a.pe_position | a.pe_batch) % 4 != 0) {
            return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rope: pe and its strides %zu %zu %zu must be multiples of 4",
                        a.pe_pair, a.pe_position, a.pe_batch);
        }
        return GGML_EXT_CUDA_OK;
    }
    return a.angles ? validate_angles(*a.angles)
                    : invalid("pe and angles", 0, "one of them: matrices, or ggml's angles");
}

// The pair whose angle turns `turns` times within the original context.
float pair_of_turns(const rope_params & p, float turns) {
    const float two_pi = 6.28318530717958647692f;
    return static_cast<float>(p.args.d_rot) * std::log(static_cast<float>(p.angles.n_ctx_orig) / (turns * two_pi)) /
           (2.0f * std::log(p.angles.freq_base));
}

rope_params params_of(const ggml_ext_cuda_rope_args & args) {
    rope_params p = {};
    p.args        = args;
    if (args.pe) {
        p.matrix_vectors = aligned(args.pe, 16) && (args.pe_pair | args.pe_position | args.pe_batch) % 16 == 0;
        return p;
    }
    p.angles      = *args.angles;
    p.theta_scale = std::pow(p.angles.freq_base, -2.0f / static_cast<float>(args.d_rot));
    p.magnitude   = p.angles.attn_factor;
    if (p.angles.ext_factor != 0.0f) {
        p.low  = std::max(0.0f, std::floor(pair_of_turns(p, p.angles.beta_fast)));
        p.high = std::min(static_cast<float>(args.d_rot - 1), std::ceil(pair_of_turns(p, p.angles.beta_slow)));
        p.magnitude *= 1.0f + 0.1f * std::log(1.0f / p.angles.freq_scale);
    }
    return p;
}

// float4 a thread for rows in registers, or 0 where the shape or an alignment asks for the general kernel.
int register_vectors(const ggml_ext_cuda_rope_args & a) {
    if (a.d_head < 16 || a.d_head > 256 || (a.d_head & (a.d_head - 1)) != 0) {
        return 0;
    }
    const int     vectors   = a.d_head == 256 ? 2 : 1;
    const int64_t part      = a.pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED ? a.d_rot : a.d_rot / 2;
    const size_t  dst_bytes = a.dst_f16 ? 8 : 16;
    const bool    fits      = a.rot_first % (4 * vectors) == 0 && part % (4 * vectors) == 0 && aligned(a.x, 16) &&
                      (a.x_nb1 | a.x_nb2 | a.x_nb3) % 16 == 0 && aligned(a.dst, dst_bytes) &&
                      (a.dst_nb1 | a.dst_nb2 | a.dst_nb3) % dst_bytes == 0 && (!a.norm || aligned(a.weight, 16));
    return fits ? vectors : 0;
}

int64_t quotient_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

// How rows in registers are spread over blocks.
struct row_layout {
    int     threads, unroll;
    int64_t chunks, tokens; // blocks for one token's heads; tokens of one block

    // lanes: threads for a row
    row_layout(const ggml_ext_cuda_rope_args & a, int64_t lanes, int most_threads, int most_unroll) {
        const int64_t pass = most_threads / lanes;
        unroll             = a.n_head <= pass ? 1 : a.n_head <= 2 * pass ? 2
                                                                         : 4;
        unroll             = std::min(unroll, most_unroll);
        chunks             = quotient_up(a.n_head, pass * unroll);
        tokens             = std::max<int64_t>(1, pass / a.n_head);
        const int64_t rows = tokens * quotient_up(a.n_head, chunks * unroll);
        threads            = static_cast<int>(quotient_up(std::max(rows * lanes, a.d_rot / 2), 32) * 32);
    }

    int64_t blocks(const ggml_ext_cuda_rope_args & a) const { return quotient_up(a.L * a.N, tokens) * chunks; }
};

row_layout layout_of(const ggml_ext_cuda_rope_args & a, int64_t lanes) {
    const row_layout large(a, lanes, THREADS, 4);
    return large.blocks(a) < FEW_BLOCKS ? row_layout(a, lanes, THREADS / 2, 1) : large;
}

} // namespace

int ggml_ext_cuda::load_rope() {
    int status = GGML_EXT_CUDA_OK;
    for (bool f16 : {false, true}) {
        status = status ? status : load("rope", any_kernel(f16));
        for (int vectors : {1, 2}) {
            for (int unroll : {1, 2, 4}) {
                status = status ? status : load("rope", rows_kernel(vectors, unroll, f16));
            }
        }
    }
    return status;
}

int ggml_ext_cuda_rope(const struct ggml_ext_cuda_rope_args * args, void * stream) {
    if (!args) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "rope: args is null");
    }
    if (const int status = validate(*args)) {
        return status;
    }
    rope_params p       = params_of(*args);
    int         vectors = register_vectors(*args);
    const bool  f16     = args->dst_f16 != 0;
    if (args->L > MAX_BLOCKS / args->N) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "rope: L = %lld times N = %lld is more than a grid holds (%lld)",
                    static_cast<long long>(args->L), static_cast<long long>(args->N),
                    static_cast<long long>(MAX_BLOCKS));
    }
    int     threads = THREADS, unroll = 1;
    int64_t chunks = 0, tokens = 1;
    if (vectors != 0) {
        const int64_t    lanes  = args->d_head / (4 * vectors);
        const row_layout layout = layout_of(*args, lanes);
        if (layout.chunks <= MAX_CHUNKS) {
            threads = layout.threads;
            unroll  = layout.unroll;
            chunks  = layout.chunks;
            tokens  = layout.tokens;
            for (; 1 << p.lane_bits < lanes; p.lane_bits++) {
            }
        } else {
            vectors = 0;
        }
    }
    if (vectors == 0) { // whose warps come to further heads by themselves
        chunks = std::min(quotient_up(args->n_head, 4 * (THREADS / 32)), MAX_CHUNKS);
    }
    p.tokens            = static_cast<unsigned>(tokens);
    p.table_tokens      = static_cast<unsigned>(std::max<int64_t>(1, threads / (args->d_rot / 2)));
    const size_t shared = 2 * static_cast<size_t>(args->d_rot * tokens) * sizeof(float);
    return launch("rope", vectors ? rows_kernel(vectors, unroll, f16) : any_kernel(f16),
                  grid(quotient_up(args->L * args->N, tokens), chunks), threads, shared, stream, p);
}
