#pragma once

// Workspace that is divided among threads. A plan is made before it is known how many threads will run it, so a step limits
// itself to as many tasks as the machine has processors.

#include "ggml-ext-kernels/common.h"
#include "ggml-ext.h"

#include <algorithm>
#include <thread>

namespace cpu_ops {

constexpr size_t ALIGNMENT = 64;

inline size_t aligned(size_t size) { return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// Asked once: to find out how many processors there are, glibc reads a file.
inline int32_t most_tasks() {
    static const auto n = static_cast<int32_t>(std::clamp(std::thread::hardware_concurrency(), 1u, 256u));
    return n;
}

// Asks for `shared` bytes, and `each` bytes for every thread behind them.
inline void want_workspace(ggml_ext_prepared & out, size_t shared, size_t each) {
    out.n_tasks        = most_tasks();
    out.workspace_size = aligned(shared) + static_cast<size_t>(out.n_tasks) * aligned(each);
}

inline void * scratch_of(const ggml_ext_exec_params & params, size_t shared, size_t each, int ith) {
    return static_cast<char *>(params.workspace) + aligned(shared) + static_cast<size_t>(ith) * aligned(each);
}

inline int status_of(int kernel_status) {
    if (kernel_status == GGML_EXT_CPU_OK) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    ggml_ext_set_error(ggml_ext_cpu_status_text(kernel_status));
    return GGML_EXT_STATUS_FAILED;
}

} // namespace cpu_ops
