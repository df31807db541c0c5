// A ggml that asks a device in a way that goes past its table.

#include <stdbool.h>

bool ggml_backend_dev_supports_op(void * device, const void * op) {
    (void) device;
    (void) op;
    return true;
}
