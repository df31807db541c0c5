#include "abi/probes.h"

#include <cstring>

namespace ggml_ext::abi {

probe_context::probe_context(const functions & fn) : fn(fn) {
    std::memset(memory, FILL, SIZE);
    ctx = fn.ggml_init({SIZE, memory, /*.no_alloc =*/true});
}

probe_context::~probe_context() { fn.ggml_free(ctx); }

bool probe_context::contains(const void * address, size_t size) const {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(memory);
    const uintptr_t at    = reinterpret_cast<uintptr_t>(address);
    return at >= begin && at <= begin + SIZE && size <= begin + SIZE - at;
}

bool expect(bool condition, const char * what, std::string & why) {
    if (!condition) {
        why = what;
    }
    return condition;
}

} // namespace ggml_ext::abi
