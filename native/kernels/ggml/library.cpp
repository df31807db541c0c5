#include "registrations.h"

#include <new>

extern "C" GGML_EXT_API int ggml_ext_kernel_library_init(ggml_backend_device * device, ggml_ext_add_registration add, void * context) {
    if (device == nullptr || add == nullptr) {
        ggml_ext_set_error("CPU kernels: the device or the function that takes the registrations is NULL");
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    try {
        using namespace cpu_ops;
        registrar            r(device);
        const shared_weights weights = std::make_shared<weight_cache>();
        register_mul_mat(r, weights);
        register_mul_mat_bias(r, weights);
        register_layer_norm(r);
        register_soft_max(r);
        register_flash_attn_ext(r);
        register_gelu_erf(r);
        register_linear_i8(r, weights);
        register_quantize_i8_convrot(r);
        register_convrot_rows(r);
        register_rope(r);
        register_rope_apply(r);
        register_rms_norm_rope(r);
        return r.hand_over(add, context);
    } catch (const std::bad_alloc &) {
        ggml_ext_set_error("CPU kernels: no memory for their registrations");
        return GGML_EXT_STATUS_NO_MEMORY;
    }
}
