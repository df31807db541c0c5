#pragma once
// A second device for tests of several splits: the CPU device's functions under another name, as a GPU, with a type of memory that
// CPU backends may not use. So the scheduler splits graphs between the two and copies tensors. Its backends are CPU backends.

#include "support/stock_ggml.h"

#include <cstdint>

namespace ggml_ext::test {

// Made at the first call, which must come before the CPU device is attached.
ggml_backend_device * second_device();

// Which operations the device says it supports: one in four is left out, which ones depends on `choice`. 0: none is left out.
void set_second_device_choice(uint64_t choice);

// Backends without the layer, attached device or not.
ggml_backend * new_native_cpu_backend(int n_threads);
ggml_backend * new_native_second_backend(int n_threads);

void set_n_threads(ggml_backend * backend, int n_threads);

} // namespace ggml_ext::test
