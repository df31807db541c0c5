#pragma once

#include "kernel.h"

// What all positions of one ROPE node share.
struct rope_node {
    float theta_scale; // from one pair's angle to the next
    float low, high;   // YaRN: pairs between these are interpolated in part
    float magnitude;   // of the rotation
};

rope_node rope_node_of(const ggml_ext_cpu_rope_args & args);

// The rotations of one position, from ggml's angles (with d_rot floats of memory) or from given matrices.
void fill_from_angles(const ggml_ext_cpu_rope_args & args,
                      const rope_node &              node,
                      int32_t                        position,
                      const rope_kernels &           kernels,
                      float *                        memory,
                      const rope_table &             table);
void fill_from_matrices(const ggml_ext_cpu_rope_args & args, const char * matrices, const rope_table & table);

// Into the rotations, what each feature is multiplied by before them.
void apply_weight(const ggml_ext_cpu_rope_args & args, const rope_table & table);
