#pragma once

#include "kernel.h"

// What all positions of one ROPE node share.
struct rope_node {
    float theta_scale; // from one pair's angle to the next
    float low, high;   // YaRN: pairs between these are interpolated in part
    float magnitude;   // of the rotation
};

rope_node rope_node_of(const ggml_ext_cpu_rope_args & args);

// The rotations of one position, from ggml's angles or from given matrices.
void fill_from_angles(const ggml_ext_cpu_rope_args & args,
                      const rope_node &              node,
                      int32_t                        position,
                      const rope_table &             table);
void fill_from_matrices(const ggml_ext_cpu_rope_args & args, const char * matrices, const rope_table & table);
