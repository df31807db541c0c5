#pragma once
// Immutable copies of plans for observers (JAVA-7).

#include "plan/plan.h"

#include <array>

struct ggml_ext_plan {
    struct node {
        std::string            name, op;
        int32_t                type;
        std::array<int64_t, 4> ne;
    };
    struct step {
        int         first, count;
        std::string kernel; // "": the device's own
        bool        fused;
        size_t      workspace_size;
        uint64_t    executed, time_ns, timed;
    };
    std::string                  backend;
    std::vector<node>            nodes;
    std::vector<step>            steps; // native ranges too
    ggml_ext::plan::refusal_list refusals;
    size_t                       workspace_size    = 0;
    bool                         before_allocation = false;
    uint64_t                     n_computed        = 0;
};
