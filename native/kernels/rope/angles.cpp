#include "angles.h"

#include <math.h>
#include <string.h>

namespace {

// Features first and second of pair i.
struct pair {
    int64_t first, second;
};

pair pair_at(const ggml_ext_cpu_rope_args & args, int64_t i) {
    return args.pairs == GGML_EXT_CPU_ROPE_INTERLEAVED ? pair{2 * i, 2 * i + 1} : pair{i, i + args.d_rot / 2};
}

void put(const rope_table & table, pair p, float a, float b, float c, float d) {
    table.own[p.first]    = a;
    table.other[p.first]  = b;
    table.other[p.second] = c;
    table.own[p.second]   = d;
}

// The pair whose angle turns `turns` times within the original context.
float pair_of_turns(const ggml_ext_cpu_rope_args & args, float turns) {
    const float two_pi = 6.28318530717958647692f;
    return static_cast<float>(args.d_rot) * logf(static_cast<float>(args.angles->n_ctx_orig) / (turns * two_pi)) /
           (2.0f * logf(args.angles->freq_base));
}

float clamped(float v, float low, float high) {
    return v < low ? low : v > high ? high
                                    : v;
}

} // namespace

rope_node rope_node_of(const ggml_ext_cpu_rope_args & args) {
    const ggml_ext_cpu_rope_angles & a    = *args.angles;
    rope_node                        node = {powf(a.freq_base, -2.0f / static_cast<float>(args.d_rot)), 0, 0, a.attn_factor};
    if (a.ext_factor != 0.0f) {
        const float last = static_cast<float>(args.d_rot - 1);
        node.low         = fmaxf(0.0f, floorf(pair_of_turns(args, a.beta_fast)));
        node.high        = fminf(last, ceilf(pair_of_turns(args, a.beta_slow)));
        node.magnitude *= 1.0f + 0.1f * logf(1.0f / a.freq_scale);
    }
    return node;
}

void fill_from_angles(const ggml_ext_cpu_rope_args & args,
                      const rope_node &              node,
                      int32_t                        position,
                      const rope_kernels &           kernels,
                      float *                        memory,
                      const rope_table &             table) {
    float *const                     sines = memory, *cosines = memory + args.d_rot / 2;
    const ggml_ext_cpu_rope_angles & a = *args.angles;
    // a running product, as ggml has it: a power would differ from it by more than rounding at long range
    float theta = static_cast<float>(position);
    for (int64_t i = 0; i < args.d_rot / 2; i++, theta *= node.theta_scale) {
        const float extrapolated = theta / (a.freq_factors ? a.freq_factors[i] : 1.0f);
        float       angle        = a.freq_scale * extrapolated;
        if (a.ext_factor != 0.0f) {
            const float ramp = (static_cast<float>(i) - node.low) / fmaxf(0.001f, node.high - node.low);
            const float mix  = (1.0f - clamped(ramp, 0.0f, 1.0f)) * a.ext_factor;
            angle            = angle * (1.0f - mix) + extrapolated * mix;
        }
        sines[i] = angle;
    }
    kernels.turn(sines, args.d_rot / 2, cosines);
    for (int64_t i = 0; i < args.d_rot / 2; i++) {
        const float c = cosines[i] * node.magnitude, s = sines[i] * node.magnitude;
        put(table, pair_at(args, i), c, -s, s, c);
    }
}

void fill_from_matrices(const ggml_ext_cpu_rope_args & args, const char * matrices, const rope_table & table) {
    for (int64_t i = 0; i < args.d_rot / 2; i++) {
        float m[4];
        memcpy(m, matrices + static_cast<size_t>(i) * args.pe_pair, sizeof(m));
        put(table, pair_at(args, i), m[0], m[1], m[2], m[3]);
    }
}

void apply_weight(const ggml_ext_cpu_rope_args & args, const rope_table & table) {
    const float * weight = args.weight + args.rot_first;
    for (int64_t i = 0; i < args.d_rot / 2; i++) {
        const pair  p = pair_at(args, i);
        const float a = weight[p.first], b = weight[p.second];
        table.own[p.first] *= a;
        table.other[p.first] *= b;
        table.other[p.second] *= a;
        table.own[p.second] *= b;
    }
}
