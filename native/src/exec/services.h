#pragma once
// What the layer offers through ggml_backend_reg_get_proc_address (SERV-1), and the CPU backend's settings that it must know.

#include "exec/runtime.h"

namespace ggml_ext::exec {

// The layer's own function of that name for this registry, NULL where it has none.
// `native` is the registry's own function of the same name.
void * find_service(const patched_registry & reg, const char * name, void * native);

} // namespace ggml_ext::exec
