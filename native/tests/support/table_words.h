#pragma once
// Tables of functions in ggml's objects, as arrays of words, for devices that tests make out of the CPU's.

#include "support/stock_ggml.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace ggml_ext::test {

constexpr int N_WORDS = 32;
using words           = std::array<void *, N_WORDS>;

// a function of libggml-base
template <typename F> F find_in_base(const char * name) {
    void * symbol = dlsym(dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD), name);
    if (symbol == nullptr) {
        std::fprintf(stderr, "stock ggml for tests: it has no %s\n", name);
        std::exit(2);
    }
    return reinterpret_cast<F>(symbol);
}

inline int fired;
alignas(64) inline char nothing[256];

template <int WORD> void * stub() {
    fired = WORD;
    return nothing;
}

template <int... WORD> words all_stubs(std::integer_sequence<int, WORD...>) {
    return {reinterpret_cast<void *>(&stub<WORD>)...};
}

// the word of an object's table that a public function calls
template <typename Call> int word_called(Call && call) {
    words object = all_stubs(std::make_integer_sequence<int, N_WORDS>());
    fired        = -1;
    call(object.data());
    if (fired < 0) {
        std::fprintf(stderr, "a device for tests: a table of this ggml is not as expected\n");
        std::exit(2);
    }
    return fired;
}

} // namespace ggml_ext::test
