// The attributes of the operator that docs/writing-an-operator.md shows, as C sees them.

#include "ggml-ext.h"

#include <string.h>

// docs: attributes in C
struct swish_attributes {
    float beta;
};

static float beta_of(const struct ggml_ext_node * node) {
    struct swish_attributes attributes;
    memcpy(&attributes, node->attrs, sizeof(attributes)); // may lie unaligned
    return attributes.beta;
}
// docs: end

float swish_beta(const struct ggml_ext_node * node);

float swish_beta(const struct ggml_ext_node * node) {
    return beta_of(node);
}
