// A ggml whose tensors have another size.

#include <stddef.h>

size_t ggml_tensor_overhead(void) { return 400; }
