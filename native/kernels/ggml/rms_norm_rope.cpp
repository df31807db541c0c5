// ROPE-3: RMS_NORM -> MUL(weight [d_head]) -> ROPE or sd.rope_apply.v1, in one pass over the rows.

#include "registrations.h"
#include "rotation.h"
#include "run_rotation.h"

namespace cpu_ops {

namespace {

int32_t match(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    rotation r;
    return read_norm_rotation(graph, first, r) ? 3 : 0;
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    return run_rotation(*params, params->nodes, ith, nth);
}

} // namespace

void register_rms_norm_rope(registrar & r) {
    ggml_ext_kernel_desc desc{};
    desc.name    = "cpu.rms_norm_rope";
    desc.op      = "RMS_NORM";
    desc.match   = match;
    desc.prepare = prepare_rotation;
    desc.run     = run;
    r.kernel(desc);
}

} // namespace cpu_ops
