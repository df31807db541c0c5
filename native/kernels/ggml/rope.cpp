// ROPE-2: the built-in ROPE, modes normal and neox. The output may take the input's place.

#include "registrations.h"
#include "rotation.h"
#include "run_rotation.h"

namespace cpu_ops {

namespace {

int32_t supports(const ggml_ext_node * node, void * /* user_data */) {
    rotation r;
    return read_rope(*node, r) ? 1 : 0;
}

// ggml's own is as fast for interleaved pairs (measured: bench/); this kernel then serves the fusion only.
int32_t preferred(const ggml_ext_node * node, void * /* user_data */) {
    rotation r;
    return (read_rope(*node, r) && r.split_half) || refuse("ggml's own kernel is as fast in mode normal");
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    return run_rotation(*params, nullptr, ith, nth);
}

} // namespace

void register_rope(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name      = "cpu.rope";
    desc.op        = "ROPE";
    desc.supports  = supports;
    desc.preferred = preferred;
    desc.prepare   = prepare_rotation;
    desc.run       = run;
    r.kernel(desc);
}

} // namespace cpu_ops
