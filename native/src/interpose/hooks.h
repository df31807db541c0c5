#pragma once
// The functions that stand in ggml's tables.

#include "interpose/device.h"

namespace ggml_ext::hooks {

bool           supports_op(ggml_backend_device * device, const ggml_tensor * op);
ggml_backend * init_backend(ggml_backend_device * device, const char * params);
void           graph_optimize(ggml_backend * backend, ggml_cgraph * graph);
int32_t        graph_compute(ggml_backend * backend, ggml_cgraph * graph);
void           backend_free(ggml_backend * backend);
void *         get_proc_address(struct ggml_backend_reg * reg, const char * name);

// OP-3: what a CPU backend calls for a registered operator's node that the layer did not intercept
void marker(ggml_tensor * dst, int ith, int nth, void * userdata);

} // namespace ggml_ext::hooks
