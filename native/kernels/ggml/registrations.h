#pragma once

// What the library offers; library.cpp registers it. One file an operator, override or rule.

#include "weights.h"

#include <memory>
#include <vector>

namespace cpu_ops {

// Kernels that multiply by weights share the packed copies.
using shared_weights = std::shared_ptr<weight_cache>;

// Registrations of one device, withdrawn again unless they are handed over.
class registrar {
public:
    explicit registrar(ggml_backend_device * device) : device_(device) {}
    ~registrar();
    registrar(const registrar &)             = delete;
    registrar & operator=(const registrar &) = delete;

    // After a failure the others do nothing.
    void op(const ggml_ext_op_desc & desc); // one that is there already is right
    void kernel(ggml_ext_kernel_desc desc);
    void kernel(ggml_ext_kernel_desc desc, const shared_weights & weights); // its user_data points to a shared_weights

    int hand_over(ggml_ext_add_registration add, void * context);

private:
    ggml_backend_device *               device_;
    std::vector<ggml_ext_registration *> all_;
    int                                 status_ = GGML_EXT_STATUS_SUCCESS;
};

inline weight_cache & weights_of(void * user_data) { return **static_cast<shared_weights *>(user_data); }

void register_mul_mat(registrar & r, const shared_weights & weights);
void register_mul_mat_bias(registrar & r, const shared_weights & weights);
void register_layer_norm(registrar & r);
void register_soft_max(registrar & r);
void register_gelu_erf(registrar & r);
void register_linear_i8(registrar & r, const shared_weights & weights);
void register_quantize_i8_convrot(registrar & r);
void register_convrot_rows(registrar & r);
void register_rope(registrar & r);
void register_rope_apply(registrar & r);
void register_rms_norm_rope(registrar & r);

} // namespace cpu_ops
