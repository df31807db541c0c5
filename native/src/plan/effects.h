#pragma once
// What a node reads and writes, for legality (FUSE-2) and reordering (FUSE-3): by operation name and view structure.

#include "abi/ggml.h"

#include <cstdint>
#include <vector>

namespace ggml_ext::plan {

enum class effect : uint8_t {
    none,       // no work: reshape, view, permute, transpose, none
    pure,       // reads its sources, writes storage of its own (owning dtype conversions too: CONT, DUP and CPY into a new tensor)
    write_view, // writes storage that it shares with another tensor: in-place variants, SET_ROWS, SET and ACC in place, CPY into a view
    unknown,    // side effects that the layer does not know: map and custom callbacks of others, optimizer steps, unknown operations
};

// The operations of one ggml by what they do. Built once for each loaded ggml; nodes are then classified by id.
class op_table {
public:
    // `marker`: callback of the CUSTOM nodes that are registered operators, which are pure
    explicit op_table(const abi::ggml & g, const void * marker = nullptr);

    const abi::ggml & ggml() const { return *ggml_; }

    effect effect_of(const ggml_tensor * node) const;

    // "MUL_MAT"
    const char * name_of(const ggml_tensor * node) const;

private:
    const abi::ggml *   ggml_;
    const void *        marker_;
    std::vector<effect> by_id_; // pure stands for write_view too: view_src tells
};

// root owner of a tensor's storage: follows view_src to its end
const ggml_tensor * owner(const ggml_tensor * tensor);

// Do two tensors' storages overlap? Byte ranges inside one owner; of different owners, addresses where both have one.
// A range is what lies between a tensor's first and last byte: two column blocks of one matrix overlap by this rule.
bool may_alias(const abi::ggml & g, const ggml_tensor * a, const ggml_tensor * b);

} // namespace ggml_ext::plan
