#include "ggml-ext-cuda-kernels/convrot_fused.h"

#include "launch_rows.cuh"

using namespace ggml_ext_cuda;

namespace ggml_ext_cuda::fused { // named, since nvcc names an unnamed one after the file's place

struct rows_of {
    const char * data;
    size_t       stride;

    __device__ float4 operator()(int64_t m, int k) const {
        return *reinterpret_cast<const float4 *>(reinterpret_cast<const float *>(data + m * stride) + k);
    }
};

rows_of rows(const float * data, size_t stride) {
    return {reinterpret_cast<const char *>(data), stride};
}

struct scale_source {
    rows_of a;
    float   scale;

    static constexpr bool NORM = false;

    __device__ float4 load(int64_t m, int k) const { return a(m, k); }
    __device__ float4 finish(float4 v, int, float) const {
        return make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
    }
};

struct rms_norm_source {
    rows_of       a;
    const float * weight;
    float         eps;

    static constexpr bool NORM = true;

    __device__ float4 load(int64_t m, int k) const { return a(m, k); }
    __device__ float  norm(float squares, int64_t K) const { return rsqrtf(squares / static_cast<float>(K) + eps); }
    __device__ float4 finish(float4 v, int k, float factor) const {
        const float4 w = weight ? *reinterpret_cast<const float4 *>(weight + k) : make_float4(1, 1, 1, 1);
        return make_float4(v.x * factor * w.x, v.y * factor * w.y, v.z * factor * w.z, v.w * factor * w.w);
    }
};

template <bool SILU> struct gate_source {
    rows_of a, b;

    static constexpr bool NORM = false;

    // the fast functions are off by a few units of the last place, far below a quantisation step
    __device__ static float gated(float x, float gate) { return __fdividef(SILU ? x : 1.0f, 1.0f + __expf(-x)) * gate; }
    __device__ float4       load(int64_t m, int k) const {
        const float4 x = a(m, k), g = b(m, k);
        return make_float4(gated(x.x, g.x), gated(x.y, g.y), gated(x.z, g.z), gated(x.w, g.w));
    }
    __device__ float4 finish(float4 v, int, float) const { return v; }
};

const char * const NAMES[] = {"scale + convrot", "rms_norm + convrot", "swiglu + convrot", "sigmoid_mul + convrot"};

bool rows_fit(const float * data, size_t stride, int64_t M, int64_t K) {
    return data && aligned(data, 16) && stride % 16 == 0 &&
           (M == 1 || stride >= static_cast<size_t>(K) * sizeof(float));
}

int validate(const ggml_ext_cuda_convrot_fused_args & a, const void * workspace, size_t workspace_size) {
    if (a.source < GGML_EXT_CUDA_CONVROT_SCALE || a.source > GGML_EXT_CUDA_CONVROT_SIGMOID_MUL) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "convrot_fused: source is %d, expected 0 to 3", a.source);
    }
    const char * what = NAMES[a.source];
    const bool   gate = a.source == GGML_EXT_CUDA_CONVROT_SWIGLU || a.source == GGML_EXT_CUDA_CONVROT_SIGMOID_MUL;
    if (a.K % GROUP != 0) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: K is %lld, expected a multiple of %d", what,
                    static_cast<long long>(a.K), GROUP);
    }
    if (!rows_fit(a.a, a.a_stride, a.M, a.K) || (gate && !rows_fit(a.b, a.b_stride, a.M, a.K))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT,
                    "%s: rows of a (stride %zu) and, for a gate, b (stride %zu) must be non-null, aligned to 16 bytes "
                    "and at least K * 4 bytes apart",
                    what, a.a_stride, a.b_stride);
    }
    if (!aligned(a.q, 4) || a.q_stride % 4 != 0) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: q and its stride %zu must be multiples of 4", what,
                    a.q_stride);
    }
    if (a.source == GGML_EXT_CUDA_CONVROT_RMS_NORM && (!(a.eps >= 0) || !aligned(a.weight, 16))) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "%s: eps %g must be at least 0 and weight aligned to 16 bytes",
                    what, static_cast<double>(a.eps));
    }
    return validate_rows(what, a.M, a.K, a.padded_rows, a.q, a.q_stride, a.out_scale, workspace, workspace_size);
}

template <class SOURCE>
int launch_rows(const ggml_ext_cuda_convrot_fused_args & a, const SOURCE & source, void * workspace, void * stream) {
    const row_output out = {a.M, a.K, a.q, a.q_stride, a.out_scale, nullptr, 1};
    return row_kernels<SOURCE, true, true>::launch(NAMES[a.source], source, out, a.padded_rows, row_groups(a.K),
                                                   workspace, stream);
}

} // namespace ggml_ext_cuda::fused

using namespace ggml_ext_cuda::fused;

int ggml_ext_cuda::load_convrot_fused() {
    for (auto load :
         {row_kernels<scale_source, true, true>::load, row_kernels<rms_norm_source, true, true>::load,
          row_kernels<gate_source<true>, true, true>::load, row_kernels<gate_source<false>, true, true>::load}) {
        if (const int status = load("convrot_fused")) {
            return status;
        }
    }
    return GGML_EXT_CUDA_OK;
}

size_t ggml_ext_cuda_convrot_fused_workspace_size(int64_t M, int64_t K) {
    return row_workspace_size(M, K);
}

int ggml_ext_cuda_convrot_fused(const struct ggml_ext_cuda_convrot_fused_args * args,
                                void *                                          workspace,
                                size_t                                          workspace_size,
                                void *                                          stream) {
    if (!args) {
        return fail(GGML_EXT_CUDA_INVALID_ARGUMENT, "convrot_fused: args is null");
    }
    const ggml_ext_cuda_convrot_fused_args & a = *args;
    if (const int status = validate(a, workspace, workspace_size)) {
        return status;
    }
    switch (a.source) {
        case GGML_EXT_CUDA_CONVROT_SCALE:
            return launch_rows(a, scale_source{rows(a.a, a.a_stride), a.scale}, workspace, stream);
        case GGML_EXT_CUDA_CONVROT_RMS_NORM:
            return launch_rows(a, rms_norm_source{rows(a.a, a.a_stride), a.weight, a.eps}, workspace, stream);
        case GGML_EXT_CUDA_CONVROT_SWIGLU:
            return launch_rows(a, gate_source<true>{rows(a.a, a.a_stride), rows(a.b, a.b_stride)}, workspace, stream);
        default:
            return launch_rows(a, gate_source<false>{rows(a.a, a.a_stride), rows(a.b, a.b_stride)}, workspace, stream);
    }
}
