#pragma once
// What a node reads and writes, for reordering (FUSE-3): by operation name and view structure.

#include "plan/graph_index.h"

namespace ggml_ext::plan {

enum class effect {
    none,       // no work: reshape, view, permute, transpose, none
    pure,       // reads its sources, writes storage of its own (owning dtype conversions such as CONT and CPY into a new tensor too)
    write_view, // writes storage that it shares with a source: in-place variants, SET_ROWS, SET, ACC, CPY into a view
    unknown,    // side effects that the layer does not know: map and custom callbacks of others, operations with no known contract
};

effect effect_of(const graph_index & index, const ggml_tensor * node);

// Do two tensors' storages overlap? Byte ranges inside one owner where both are known, whole owners otherwise;
// with addresses (data != NULL on both) by address too.
bool may_alias(const ggml_tensor * a, const ggml_tensor * b);

} // namespace ggml_ext::plan
