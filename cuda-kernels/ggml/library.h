#pragma once

// What the library offers; library.cpp registers it. One file an operator, override or rule.

#include "ggml-ext-cpu-ops.h"
#include "ggml-ext-cuda-kernels.h"
#include "node.h"

#include <vector>

namespace cuda_ops {

using namespace cpu_ops; // of node.h

// What is known of the device; kernels get it as their user data.
struct device {
    ggml_backend_device *      ggml       = nullptr;
    int32_t                    ordinal    = 0;
    int                        capability = 0; // 90: compute capability 9.0
    ggml_ext_cuda_context_v1_t context    = nullptr;
    ggml_ext_cuda_blas_v1_t    blas       = nullptr;
};

// Registrations of one device, withdrawn again unless they are handed over.
class registrar {
public:
    explicit registrar(const device & d) : device_(d) {}
    ~registrar();
    registrar(const registrar &)             = delete;
    registrar & operator=(const registrar &) = delete;

    // After a failure the others do nothing.
    void op(const char * name, size_t attrs_size, ggml_ext_infer infer); // one that is there already is right
    // what they record depends on metadata and addresses alone
    void kernel(ggml_ext_kernel_desc desc, uint32_t more_flags = 0);

    int hand_over(ggml_ext_add_registration add, void * context);

private:
    const device &                       device_;
    std::vector<ggml_ext_registration *> all_;
    int                                  status_ = GGML_EXT_STATUS_SUCCESS;
};

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
