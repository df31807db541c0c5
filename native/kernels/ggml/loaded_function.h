#pragma once

// Functions of libraries that the process has loaded already.

namespace cpu_ops {

// The first of that name, asked of each loaded library: ggml may have been loaded with its symbols hidden from other libraries.
void * find_loaded(const char * symbol);

} // namespace cpu_ops
