#include "cuda/driver.h"

#include "cuda/library_names.h"
#include "support/status.h"

namespace ggml_ext::cuda {

std::shared_ptr<const driver> load_driver() {
    auto cu = std::make_shared<driver>();
    if (!cu->library.open(DRIVER_NAMES)) {
        fail(GGML_EXT_STATUS_UNSUPPORTED, "the CUDA driver, %s, cannot be loaded: %s", *DRIVER_NAMES.begin(), loader_error().c_str());
        return nullptr;
    }
#define GGML_EXT_CUDA_FIND(name, symbol, arguments)                                                           \
    cu->library.find(symbol, cu->name);                                                                       \
    if (cu->name == nullptr) {                                                                                \
        fail(GGML_EXT_STATUS_UNSUPPORTED, "the CUDA driver has no %s: CUDA 11.4 or later is needed", symbol); \
        return nullptr;                                                                                       \
    }
    GGML_EXT_CUDA_FUNCTIONS(GGML_EXT_CUDA_FIND)
#undef GGML_EXT_CUDA_FIND
#define GGML_EXT_CUDA_FIND_OPTIONAL(name, symbol, arguments) cu->library.find(symbol, cu->name);
    GGML_EXT_CUDA_OPTIONAL_FUNCTIONS(GGML_EXT_CUDA_FIND_OPTIONAL)
#undef GGML_EXT_CUDA_FIND_OPTIONAL
    if (check(*cu, cu->cuInit(0), "cuInit") != GGML_EXT_STATUS_SUCCESS ||
        check(*cu, cu->cuDriverGetVersion(&cu->version), "cuDriverGetVersion") != GGML_EXT_STATUS_SUCCESS) {
        return nullptr;
    }
    return cu;
}

int check(const driver & cu, CUresult result, const char * what) {
    if (result == 0) {
        return GGML_EXT_STATUS_SUCCESS;
    }
    const char * name = nullptr;
    const char * text = nullptr;
    cu.cuGetErrorName(result, &name);
    cu.cuGetErrorString(result, &text);
    return fail(GGML_EXT_STATUS_FAILED, "%s: %s (%d): %s", what, name != nullptr ? name : "unknown error", result, text != nullptr ? text : "");
}

} // namespace ggml_ext::cuda
