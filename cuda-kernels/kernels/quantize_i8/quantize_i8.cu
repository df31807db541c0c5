#include "quantize.h"

#include "launch_rows.cuh"

#include <algorithm>

using namespace ggml_ext_cuda;

namespace ggml_ext_cuda::plain { // named, since nvcc names an unnamed one after the file's place

template <bool W> struct plain_source {
    const char * x;
    size_t       stride;
    int          K;

    static constexpr bool NORM = false;

    __device__ float4 load(int64_t m, int k) const {
        const auto * row = reinterpret_cast<const float *>(x + m * stride) + k;
        if constexpr (W) {
            return *reinterpret_cast<const float4 *>(row);
        } else {
            return make_float4(row[0], k + 1 < K ? row[1] : 0.0f, k + 2 < K ? row[2] : 0.0f, k + 3 < K ? row[3] : 0.0f);
        }
    }

    __device__ float4 finish(float4 v, int, float) const { return v; }
};

template <bool ROTATE, bool W> using kernels = row_kernels<plain_source<W>, ROTATE, W>;

int validate(const ggml_ext_cuda_quantize_i8_args & a, const void * workspace, size_t workspace_size) {
    const auto ll = [](int64_t v) { return static_cast<long long>(v); };
    if (a.group == 4 || a.group == 16 || a.group == 64) {
        return fail(GGML_EXT_CUDA_UNSUPPORTED, "quantize_i8: group %lld has no CUDA kernel, 1 and 256 have",
                    ll(a.group));
    }
    if (a.group != 1 && a.group != 256) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "quantize_i8: group is %lld, expected 1, 4, 16, 64 or 256",
                    ll(a.group));
    }
    if (a.K % a.group != 0) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "quantize_i8: K is %lld, expected a multiple of the group, %lld",
                    ll(a.K), ll(a.group));
    }
    if (!a.x || !aligned(a.x, 4) || a.x_stride % 4 != 0 ||
        (a.M > 1 && a.x_stride < static_cast<size_t>(a.K) * sizeof(float))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "quantize_i8: x must be non-null and aligned to 4 bytes, x_stride (%zu) a multiple of 4 and at "
                    "least K * 4",
                    a.x_stride);
    }
    return validate_rows("quantize_i8", a.M, a.K, a.padded_rows, a.q, a.q_stride, a.scale, workspace, workspace_size);
}

template <bool ROTATE, bool W>
int launch_rows(const ggml_ext_cuda_quantize_i8_args & a, int groups, void * workspace, void * stream) {
    const plain_source<W> source = {reinterpret_cast<const char *>(a.x), a.x_stride, static_cast<int>(a.K)};
    const row_output      out    = {a.M, a.K, a.q, a.q_stride, a.scale, nullptr, 1};
    return kernels<ROTATE, W>::launch("quantize_i8", source, out, a.padded_rows, groups, workspace, stream);
}

} // namespace ggml_ext_cuda::plain

using namespace ggml_ext_cuda::plain;

int ggml_ext_cuda::load_quantize_i8() {
    for (auto load : {kernels<false, false>::load, kernels<false, true>::load, kernels<true, false>::load,
                      kernels<true, true>::load}) {
        if (const int status = load("quantize_i8")) {
            return status;
        }
    }
    return GGML_EXT_CUDA_OK;
}

int ggml_ext_cuda::quantize_i8(
    const ggml_ext_cuda_quantize_i8_args & a, int groups, void * workspace, size_t workspace_size, void * stream) {
    if (const int status = validate(a, workspace, workspace_size)) {
        return status;
    }
    groups = std::max(groups, row_groups(a.K));
    const bool wide =
        a.K % 4 == 0 && a.x_stride % 16 == 0 && aligned(a.x, 16) && a.q_stride % 4 == 0 && aligned(a.q, 4);
    if (a.group == 1) {
        return wide ? launch_rows<false, true>(a, groups, workspace, stream)
                    : launch_rows<false, false>(a, groups, workspace, stream);
    }
    return wide ? launch_rows<true, true>(a, groups, workspace, stream)
                : launch_rows<true, false>(a, groups, workspace, stream);
}

size_t ggml_ext_cuda_quantize_i8_workspace_size(int64_t M, int64_t K) {
    return row_workspace_size(M, K);
}

int ggml_ext_cuda_quantize_i8(const struct ggml_ext_cuda_quantize_i8_args * args,
                              void *                                        workspace,
                              size_t                                        workspace_size,
                              void *                                        stream) {
    return args ? ggml_ext_cuda::quantize_i8(*args, 0, workspace, workspace_size, stream)
                : fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "quantize_i8: args is null");
}

int64_t ggml_ext_cuda_convrot_padded_rows(int64_t M) {
    return (M + 3) / 4 * 4;
}

size_t ggml_ext_cuda_convrot_scale_offset(int64_t M, int64_t K) {
    return M < 1 || K < 1 ? 0 : static_cast<size_t>(ggml_ext_cuda_convrot_padded_rows(M)) * static_cast<size_t>(K);
}

size_t ggml_ext_cuda_convrot_size(int64_t M, int64_t K) {
    return M < 1 || K < 1 ? 0 : ggml_ext_cuda_convrot_scale_offset(M, K) + static_cast<size_t>(M) * sizeof(float);
}
