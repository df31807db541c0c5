#pragma once
// What ggml_ext::abi::load asks of a ggml, one subject a function. None of them runs code of a backend.

#include "abi/ggml.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace ggml_ext::abi {

// Opens or finds the libraries and resolves all functions; fills out.fn, out.version and out.base_path.
// Returns an ggml_ext_status.
int resolve_library(const ggml_ext_load_params & params, ggml & out, std::string & error);

// The rest return false where this ggml differs from what ggml-ext knows; `why` names the first difference.

// Bounds the table of names (op_names) and finds the ids by name.
bool probe_ops(ggml & g, std::string & why);
// struct ggml_tensor, and that public constructors give the operations that were found by name
bool probe_tensor(const ggml & g, std::string & why);
// struct ggml_cgraph without its uid
bool probe_graph(const ggml & g, std::string & why);
// the tables of device, backend and registry
bool probe_tables(ggml & g, std::string & why);

// the condition; where it does not hold, `why` says what was expected
bool expect(bool condition, const char * what, std::string & why);

// A context in memory of our own, filled with a pattern, so that what ggml leaves unset shows.
class probe_context {
public:
    static constexpr size_t  SIZE = 64 * 1024;
    static constexpr uint8_t FILL = 0xa5;

    explicit probe_context(const functions & fn);
    ~probe_context();
    probe_context(const probe_context &)             = delete;
    probe_context & operator=(const probe_context &) = delete;

    ggml_context * get() const { return ctx; }
    const char *   begin() const { return memory; }

    ggml_tensor * new_f32(int64_t ne0) const { return fn.ggml_new_tensor_4d(ctx, TYPE_F32, ne0, 1, 1, 1); }

    // are `size` bytes at `address` within this context's memory?
    bool contains(const void * address, size_t size) const;

private:
    const functions & fn;
    ggml_context *    ctx;
    alignas(64) char memory[SIZE];
};

} // namespace ggml_ext::abi
