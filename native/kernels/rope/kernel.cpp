#include "kernel.h"
#include "prefetch.h"
#include "row_vectors.h"
#include "vmath.h"

namespace {

constexpr size_t FETCH_ROWS = 8; // so many rows ahead results are fetched, and x twice as many

void turn(float * angles, int64_t n, float * cosines) {
#if !defined(GGML_EXT_ISA_SCALAR)
    vi largest = {};
    each_vector(n, [&](int64_t i, int lanes) {
        largest = max(largest, bits(take(angles + i, lanes)) & 0x7FFFFFFF); // infinity and NaN are larger than any number
    });
    if (from_bits(set1(max_lane(largest)))[0] <= TURN_LIMIT) {
        each_vector(n, [&](int64_t i, int lanes) {
            vf sine, cosine;
            sine_cosine(take(angles + i, lanes), sine, cosine);
            put(angles + i, sine, lanes);
            put(cosines + i, cosine, lanes);
        });
        return;
    }
#endif
    for (int64_t i = 0; i < n; i++) {
        cosines[i] = __builtin_cosf(angles[i]);
        angles[i]  = __builtin_sinf(angles[i]);
    }
}

// 1 / sqrt(mean(x^2) + eps); four chains of additions, which wait for each other less than one.
float norm_factor(const ggml_ext_cpu_rope_args & args, const float * x) {
    vf            squares[4] = {};
    const int64_t by_fours   = args.d_head / (4 * LANES) * (4 * LANES);
    for (int64_t i = 0; i < by_fours; i += 4 * LANES) {
        for (int j = 0; j < 4; j++) {
            const vf v = load(x + i + j * LANES);
            squares[j] = fma(v, v, squares[j]);
        }
    }
    each_vector(args.d_head - by_fours, [&](int64_t i, int n) {
        const vf v = take(x + by_fours + i, n);
        squares[0] = fma(v, v, squares[0]);
    });
    const float total = sum((squares[0] + squares[1]) + (squares[2] + squares[3]));
    return 1.0f / __builtin_sqrtf(total / static_cast<float>(args.d_head) + args.eps);
}

// What is not rotated.
void rest(const ggml_ext_cpu_rope_args & args, const float * x, float * dst, float factor, int64_t begin, int64_t end) {
    if (args.norm) {
        each_vector(end - begin, [&](int64_t i, int n) {
            const vf v = take(x + begin + i, n) * factor;
            put(dst + begin + i, args.weight ? v * take(args.weight + begin + i, n) : v, n);
        });
    } else if (x != dst) {
        memcpy(dst + begin, x + begin, static_cast<size_t>(end - begin) * sizeof(float));
    }
}

void rotate(const ggml_ext_cpu_rope_args & args, const rope_table & table, const float * x, float * dst, float factor) {
    const float * in  = x + args.rot_first;
    float *       out = dst + args.rot_first;
    const float * own = table.own, *other = table.other; // the compiler takes each store for one that may change the table
    if (args.pairs == GGML_EXT_CPU_ROPE_INTERLEAVED) {
        each_vector(args.d_rot, [&](int64_t i, int n) {
            const vf v = take(in + i, n);
            put(out + i, fma(v, take(own + i, n), swap_pairs(v) * take(other + i, n)) * factor, n);
        });
    } else {
        const int64_t half = args.d_rot / 2;
        each_vector(half, [&](int64_t i, int n) {
            const vf a = take(in + i, n), b = take(in + half + i, n);
            put(out + i, fma(a, take(own + i, n), b * take(other + i, n)) * factor, n);
            put(out + half + i, fma(b, take(own + half + i, n), a * take(other + half + i, n)) * factor, n);
        });
    }
    if (args.d_rot < args.d_head) {
        rest(args, x, dst, factor, 0, args.rot_first);
        rest(args, x, dst, factor, args.rot_first + args.d_rot, args.d_head);
    }
}

void rows(const ggml_ext_cpu_rope_args & args, const rope_table & table, const float * x, float * dst, int64_t heads, bool far) {
    const char * in     = reinterpret_cast<const char *>(x);
    char *       out    = reinterpret_cast<char *>(dst);
    float        factor = args.norm ? norm_factor(args, x) : 1.0f;
    for (int64_t h = 0; h < heads; h++) {
        const char * next = in + args.x_nb1;
        // its root and quotient take long: they are under way while this row is rotated
        const float next_factor = args.norm && h + 1 < heads ? norm_factor(args, reinterpret_cast<const float *>(next)) : 1.0f;
        if (far) {
            const auto bytes = args.d_head * int64_t{sizeof(float)};
            fetch_to_write(out + FETCH_ROWS * args.dst_nb1, 0, 1, bytes);
            fetch_to_read(in + 2 * FETCH_ROWS * args.x_nb1, bytes);
        }
        rotate(args, table, reinterpret_cast<const float *>(in), reinterpret_cast<float *>(out), factor);
        in = next;
        out += args.dst_nb1;
        factor = next_factor;
    }
}

} // namespace

const rope_kernels GGML_EXT_KERNELS(rope) = {turn, rows};
