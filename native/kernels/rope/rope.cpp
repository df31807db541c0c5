#include "angles.h"
#include "arguments.h"

namespace {

constexpr int64_t LARGE = int64_t{1} << 20; // bytes

bool valid(const ggml_ext_cpu_rope_args & a, int ith, int nth) {
    const bool shape = extents_ok(a.d_head, a.n_head, a.L, a.N) && a.rot_first >= 0 &&
                       a.rot_first % 2 == 0 && a.d_rot >= 2 && a.d_rot % 2 == 0 && a.rot_first <= a.d_head && a.d_rot <= a.d_head - a.rot_first;
    const bool aligned = float_aligned(a.x, a.x_nb1, a.x_nb2, a.x_nb3, a.dst, a.dst_nb1, a.dst_nb2, a.dst_nb3, a.weight) &&
                         (a.pe ? float_aligned(a.pe, a.pe_pair, a.pe_position, a.pe_batch)
                               : a.angles && float_aligned(a.angles->positions, a.angles->freq_factors));
    const bool angles =
        a.angles && a.angles->positions && a.angles->freq_base > 0 && a.angles->freq_scale > 0 &&
        (a.angles->ext_factor == 0 || (a.angles->n_ctx_orig > 0 && a.angles->beta_fast > 0 && a.angles->beta_slow > 0));
    return shape && aligned && a.x && a.dst && (a.pe || angles) && thread_ok(ith, nth) && (!a.norm || a.eps >= 0) &&
           (a.pairs == GGML_EXT_CPU_ROPE_INTERLEAVED || a.pairs == GGML_EXT_CPU_ROPE_SPLIT_HALF);
}

} // namespace

// A table of two values a feature, and the angles of one position.
size_t ggml_ext_cpu_rope_scratch_size(int64_t d_head) {
    return !extents_ok(d_head) ? 0 : 3 * static_cast<size_t>(d_head) * sizeof(float);
}

int ggml_ext_cpu_rope(
    const struct ggml_ext_cpu_rope_args * args, void * scratch, size_t scratch_size, int ith, int nth) {
    if (!args || !scratch || !float_aligned(scratch) || !valid(*args, ith, nth)) {
        return GGML_EXT_CPU_INVALID_ARGUMENT;
    }
    if (scratch_size < ggml_ext_cpu_rope_scratch_size(args->d_head)) {
        return GGML_EXT_CPU_SMALL_BUFFER;
    }
    const rope_kernels & kernels = GGML_EXT_SELECT(rope);
    float *              memory  = static_cast<float *>(scratch);
    const rope_table     table   = {memory, memory + args->d_head};
    const rope_node      node    = args->pe ? rope_node{} : rope_node_of(*args);

    // rows that follow each other in memory and do not fit into L2
    const bool far = args->x_nb2 == static_cast<size_t>(args->n_head) * args->x_nb1 &&
                     args->dst_nb2 == static_cast<size_t>(args->n_head) * args->dst_nb1 &&
                     args->n_head * args->L * args->d_head * int64_t{sizeof(float)} > LARGE;

    const range mine = share(args->n_head * args->L * args->N, ith, nth);
    int64_t     heads;
    for (int64_t r = mine.begin; r < mine.end; r += heads) {
        const int64_t first    = r % args->n_head;
        const size_t  position = static_cast<size_t>(r / args->n_head % args->L);
        const size_t  batch    = static_cast<size_t>(r / args->n_head / args->L);
        heads                  = args->n_head - first < mine.end - r ? args->n_head - first : mine.end - r;
        if (args->pe) {
            fill_from_matrices(*args,
                               reinterpret_cast<const char *>(args->pe) + position * args->pe_position +
                                   batch * args->pe_batch,
                               table);
        } else {
            fill_from_angles(*args, node, args->angles->positions[position], kernels, memory + 2 * args->d_head, table);
        }
        if (args->norm && args->weight) {
            apply_weight(*args, table);
        }
        const char * x = reinterpret_cast<const char *>(args->x) + static_cast<size_t>(first) * args->x_nb1 +
                         position * args->x_nb2 + batch * args->x_nb3;
        char * dst = reinterpret_cast<char *>(args->dst) + static_cast<size_t>(first) * args->dst_nb1 +
                     position * args->dst_nb2 + batch * args->dst_nb3;
        kernels.rows(*args, table, reinterpret_cast<const float *>(x), reinterpret_cast<float *>(dst), heads, far);
    }
    return GGML_EXT_CPU_OK;
}
