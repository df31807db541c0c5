#pragma once

// What the library offers; library.cpp registers it. One file an operator, override or rule.

#include "ggml-ext-cpu-ops.h"
#include "ggml-ext-cuda-kernels.h"
#include "node.h"
#include "registrar.h"

#include <cstdint>

namespace cuda_ops {

using namespace cpu_ops; // of what the CPU library has in common with this one

// What is known of the device; kernels get it as their user data.
struct device {
    ggml_backend_device *      ggml       = nullptr;
    int32_t                    ordinal    = 0;
    int                        capability = 0; // 90: compute capability 9.0
    ggml_ext_cuda_context_v1_t context    = nullptr;
    ggml_ext_cuda_blas_v1_t    blas       = nullptr;
};

class registrar : public device_registrar {
public:
    explicit registrar(const device & d) : device_registrar(d.ggml), device_(d) {}

    // What a kernel records depends on metadata and addresses alone. Its user_data points to a device.
    void kernel(const ggml_ext_kernel_desc & desc, uint32_t more_flags = 0) {
        register_kernel(desc, GGML_EXT_KERNEL_CAPTURE_SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE | more_flags, device_);
    }

private:
    const device & device_;
};

// Whether a tensor begins at a multiple of so many bytes. Where it has no address yet, its owner will: ggml's allocators see to that.
inline bool is_aligned(const ggml_ext_tensor & t, size_t bytes) {
    return (t.data != nullptr ? reinterpret_cast<uintptr_t>(t.data) : t.view_offs) % bytes == 0;
}

constexpr int64_t MOST_BLOCKS = 0x7fffffff; // of a grid: one a row, or a position of a batch
constexpr int64_t LONGEST_ROW = 0x40000000; // features

// False with the reason where the quantisers of rows do not take so many, or so long ones.
bool fits_grid(const ggml_ext_tensor & x);

// The stream of an execution. A status.
int stream_of(const ggml_ext_exec_params & params, const device & d, void *& stream);

// ggml-ext's status for one of the kernels', with its message
int status_of(int cuda_status);

void register_rope(registrar & r);
void register_rope_apply(registrar & r);
void register_rms_norm_rope(registrar & r);
void register_quantize_i8_convrot(registrar & r);
void register_linear_i8(registrar & r);
void register_convrot_fused(registrar & r);

} // namespace cuda_ops
