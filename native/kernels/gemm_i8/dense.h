#pragma once

// A product of rows without gaps and a scale for each row and column, for the table of errors and the benchmark.

#include "ggml-ext-kernels/gemm_i8.h"

struct dense_product {
    int64_t        M, N, K;
    const void *   packed;
    size_t         packed_size;
    const int8_t * w;
    const float *  x_scale;
    const float *  w_scale;
    float *        dst;

    ggml_ext_cpu_gemm_i8_args of(const int8_t * x) const {
        ggml_ext_cpu_gemm_i8_args args = {};
        args.M                         = M;
        args.N                         = N;
        args.K                         = K;
        args.packed                    = packed;
        args.packed_size               = packed_size;
        args.x                         = x;
        args.x_stride                  = static_cast<size_t>(K);
        args.x_scale                   = x_scale;
        args.x_scales                  = M;
        args.w_scale                   = w_scale;
        args.w_scales                  = N;
        args.dst                       = dst;
        args.dst_stride                = static_cast<size_t>(N) * sizeof(float);
        args.w                         = w;
        args.w_stride                  = static_cast<size_t>(K);
        return args;
    }
};
