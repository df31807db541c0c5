#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

namespace ggml_ext_cpu {

namespace {

const char * const NAMES[] = {"scalar", "avx2", "avx512", "neon"};

bool runs(isa i) {
    switch (i) {
        case isa::scalar:
            return true;
#if defined(__x86_64__)
        case isa::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        case isa::avx512:
            return runs(isa::avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__)
        case isa::neon:
            return true;
#endif
        default:
            return false;
    }
}

isa choose() {
    const isa    best_first[] = {isa::avx512, isa::neon, isa::avx2, isa::scalar};
    const char * wanted       = getenv("GGML_EXT_CPU_ISA");
    if (wanted != nullptr) {
        for (isa i : best_first) {
            if (strcmp(wanted, NAMES[static_cast<int>(i)]) == 0 && runs(i)) {
                return i;
            }
        }
    }
    for (isa i : best_first) {
        if (runs(i)) {
            return i;
        }
    }
    return isa::scalar;
}

} // namespace

isa active_isa() {
    static const isa chosen = choose();
    return chosen;
}

} // namespace ggml_ext_cpu

const char * ggml_ext_cpu_isa(void) {
    return ggml_ext_cpu::NAMES[static_cast<int>(ggml_ext_cpu::active_isa())];
}

const char * ggml_ext_cpu_status_text(int status) {
    switch (status) {
        case GGML_EXT_CPU_OK:
            return "ok";
        case GGML_EXT_CPU_INVALID_ARGUMENT:
            return "invalid argument: a null pointer, an extent below 1, a stride shorter than a row, or ith outside "
                   "nth";
        case GGML_EXT_CPU_SMALL_BUFFER:
            return "the scratch or packed buffer is smaller than its size function says";
        case GGML_EXT_CPU_WRONG_PACKING:
            return "the packed weights have other extents, another kind or another instruction set than the call";
        case GGML_EXT_CPU_UNSUPPORTED:
            return "the arguments are outside what the kernel computes exactly";
        default:
            return "unknown status";
    }
}
