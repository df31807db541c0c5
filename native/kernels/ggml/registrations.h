#pragma once

// What the library offers; library.cpp registers it. One file an operator, override or rule.

#include "registrar.h"
#include "weights.h"

#include <memory>

namespace cpu_ops {

// Kernels that multiply by weights share the packed copies.
using shared_weights = std::shared_ptr<weight_cache>;

class registrar : public device_registrar {
public:
    using device_registrar::device_registrar;

    void kernel(const ggml_ext_kernel_desc & desc) { register_kernel(desc, 0); }
    // its user_data points to a shared_weights
    void kernel(const ggml_ext_kernel_desc & desc, const shared_weights & weights) { register_kernel(desc, 0, weights); }
};

inline weight_cache & weights_of(void * user_data) { return **static_cast<shared_weights *>(user_data); }

void register_mul_mat(registrar & r, const shared_weights & weights);
void register_mul_mat_bias(registrar & r, const shared_weights & weights);
void register_layer_norm(registrar & r);
void register_soft_max(registrar & r);
void register_flash_attn_ext(registrar & r);
void register_gelu_erf(registrar & r);
void register_linear_i8(registrar & r, const shared_weights & weights);
void register_quantize_i8_convrot(registrar & r);
void register_convrot_rows(registrar & r);
void register_rope(registrar & r);
void register_rope_apply(registrar & r);
void register_rms_norm_rope(registrar & r);

} // namespace cpu_ops
