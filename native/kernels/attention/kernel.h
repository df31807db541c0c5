#pragma once

#include "dispatch.h"
#include "ggml-ext-kernels/attention.h"
#include "partition.h"

// Queries of one head of one batch.
struct attention_part {
    int64_t batch, head;
    range   queries; // at most ATTENTION_QUERIES
    float   slope;   // what the mask is multiplied by
};

constexpr int64_t ATTENTION_QUERIES = 128;

struct attention_kernels {
    size_t (*scratch_size)(int64_t d_k, int64_t d_v);
    void (*run)(const ggml_ext_cpu_attention_args & args, const attention_part & part, float * scratch);
};

GGML_EXT_DECLARE_KERNELS(attention_kernels, attention);
