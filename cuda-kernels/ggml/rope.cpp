// ROPE-2: the built-in ROPE, modes normal and neox. The output may take the input's place.

#include "launch_rotation.h"

namespace cuda_ops {

void register_rope(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name     = "cuda.rope";
    desc.op       = "ROPE";
    desc.supports = [](const ggml_ext_node * node, void *) -> int32_t {
        rotation found;
        return read_rope(*node, found) && within_limit(found) ? 1 : 0;
    };
    desc.execute = execute_rotation;
    r.kernel(desc);
}

} // namespace cuda_ops
