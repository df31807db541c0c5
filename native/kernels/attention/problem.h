#pragma once

// Heads of one shape with their inputs, for the error table and the benchmark.

#include "ggml-ext-kernels/attention.h"
#include "support.h"

#include <vector>

struct attention_problem {
    std::vector<float>          q, k, v, dst;
    std::vector<char>           scratch;
    ggml_ext_cpu_attention_args args{};

    attention_problem(int64_t queries, int64_t keys, int64_t d, int64_t heads)
        : q(test::uniform(static_cast<size_t>(queries * d * heads), 1, -2, 2)), k(test::uniform(static_cast<size_t>(keys * d * heads), 2)),
          v(test::uniform(k.size(), 3)), dst(q.size()), scratch(ggml_ext_cpu_attention_scratch_size(d, d)) {
        const size_t row = static_cast<size_t>(d) * sizeof(float), all = row * static_cast<size_t>(heads);
        args.queries = queries;
        args.keys    = keys;
        args.heads = args.kv_heads = heads;
        args.batches = args.kv_batches = 1;
        args.d_k = args.d_v = d;
        args.q              = q.data();
        args.k              = k.data();
        args.v              = v.data();
        args.dst            = dst.data();
        args.q_stride = args.k_stride = args.v_stride = args.dst_stride = {all, row, 0};
        args.scale                                                      = 1.0f / std::sqrt(static_cast<float>(d));
    }

    int run() { return ggml_ext_cpu_attention(&args, scratch.data(), scratch.size(), 0, 1); }
};
