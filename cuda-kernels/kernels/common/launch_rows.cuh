#pragma once

// Chooses and launches the kernels of quantize_rows.cuh.

#include "quantize_rows.cuh"
#include "status.h"

namespace ggml_ext_cuda {

inline int row_parts(int64_t K) {
    return K <= MAX_ROW ? 1 : static_cast<int>((K + PART_FEATURES - 1) / PART_FEATURES);
}

inline size_t row_workspace_size(int64_t M, int64_t K) {
    return M < 1 || K <= MAX_ROW ? 0 : static_cast<size_t>(M) * static_cast<size_t>(row_parts(K)) * sizeof(int);
}

template <int GROUPS> constexpr int64_t groups_of_block() {
    return row_block<GROUPS>::THREADS / GROUP_LANES * GROUPS;
}

// Groups of 256 features that half a warp should hold of a row of K.
inline int row_groups(int64_t K) {
    const int64_t groups = (K + GROUP - 1) / GROUP;
    return groups <= groups_of_block<1>() ? 1 : groups <= groups_of_block<2>() ? 2
                                                                               : 4;
}

template <class SOURCE, bool ROTATE, bool W> struct row_kernels {
    using kernel = void (*)(SOURCE, row_output);

    static kernel whole(int groups) {
        return groups == 1   ? kernel(quantize_rows<SOURCE, ROTATE, W, 1, WHOLE_ROWS>)
               : groups == 2 ? kernel(quantize_rows<SOURCE, ROTATE, W, 2, WHOLE_ROWS>)
                             : kernel(quantize_rows<SOURCE, ROTATE, W, 4, WHOLE_ROWS>);
    }

    static kernel part(bool magnitudes) {
        return magnitudes ? kernel(quantize_rows<SOURCE, ROTATE, W, PART_GROUPS, PART_MAGNITUDES>)
                          : kernel(quantize_rows<SOURCE, ROTATE, W, PART_GROUPS, PART_QUANTIZE>);
    }

    static int load(const char * what) {
        int status = GGML_EXT_CUDA_OK;
        for (int groups : {1, 2, 4}) {
            status = status ? status : ggml_ext_cuda::load(what, whole(groups));
        }
        if constexpr (!SOURCE::NORM) {
            for (bool magnitudes : {false, true}) {
                status = status ? status : ggml_ext_cuda::load(what, part(magnitudes));
            }
        }
        return status;
    }

    // groups: 1, 2 or 4, at least row_groups(K); workspace: row_workspace_size bytes.
    static int launch(const char *   what,
                      const SOURCE & source,
                      row_output     out,
                      int64_t        padded_rows,
                      int            groups,
                      void *         workspace,
                      void *         stream) {
        out.parts = row_parts(out.K);
        if (out.parts == 1) {
            const int64_t halves  = ((out.K + GROUP - 1) / GROUP + groups - 1) / groups;
            const int     threads = static_cast<int>((halves + 1) / 2 * 32);
            return ggml_ext_cuda::launch(what, whole(groups), padded_rows, threads, shared(threads), stream, source,
                                         out);
        }
        if constexpr (SOURCE::NORM) {
            return fail(GGML_EXT_CUDA_UNSUPPORTED, "%s: K is %lld, the largest is %d", what,
                        static_cast<long long>(out.K), MAX_ROW);
        } else {
            return launch_parts(what, source, out, padded_rows, workspace, stream);
        }
    }

private:
    static int launch_parts(const char *   what,
                            const SOURCE & source,
                            row_output     out,
                            int64_t        padded_rows,
                            void *         workspace,
                            void *         stream) {
        out.magnitudes = static_cast<int *>(workspace);
        if (padded_rows > MAX_BLOCKS / out.parts) {
            return fail(GGML_EXT_CUDA_UNSUPPORTED, "%s: M = %lld, K = %lld need more blocks than a grid holds", what,
                        static_cast<long long>(out.M), static_cast<long long>(out.K));
        }
        const int status = ggml_ext_cuda::launch(what, part(true), out.M * out.parts, PART_THREADS,
                                                 shared(PART_THREADS), stream, source, out);
        return status ? status
                      : ggml_ext_cuda::launch(what, part(false), padded_rows * out.parts, PART_THREADS,
                                              shared(PART_THREADS), stream, source, out);
    }

    static size_t shared(int threads) {
        return ROTATE ? static_cast<size_t>(threads / GROUP_LANES) * GROUP * sizeof(float) : 0;
    }
};

// What the entries of all row quantisers have in common.
inline int validate_rows(const char *   what,
                         int64_t        M,
                         int64_t        K,
                         int64_t        padded_rows,
                         const int8_t * q,
                         size_t         q_stride,
                         const float *  scale,
                         const void *   workspace,
                         size_t         workspace_size) {
    const auto ll = [](int64_t v) { return static_cast<long long>(v); };
    if (M < 1 || K < 1 || padded_rows < M) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "%s: M = %lld and K = %lld must be at least 1, padded_rows = %lld at least M", what, ll(M), ll(K),
                    ll(padded_rows));
    }
    if (!q || !scale || !aligned(scale, 4)) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: q is null, or the scales are null or not aligned to 4 bytes",
                    what);
    }
    if (padded_rows > 1 && q_stride < static_cast<size_t>(K)) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: q_stride is %zu, expected at least K = %lld", what, q_stride,
                    ll(K));
    }
    if (K > 0x40000000) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "%s: K is %lld, the largest is 2^30", what, ll(K));
    }
    const size_t needed = row_workspace_size(M, K);
    if (workspace_size < needed) {
        return fail(GGML_EXT_CUDA_SMALL_WORKSPACE, "%s: the workspace has %zu bytes, expected %zu", what,
                    workspace_size, needed);
    }
    if (needed > 0 && (!workspace || !aligned(workspace, 4))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: the workspace is null or not aligned to 4 bytes", what);
    }
    return GGML_EXT_CUDA_OK;
}

} // namespace ggml_ext_cuda
