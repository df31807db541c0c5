#include "dispatch.h"

#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#    include <cpuid.h>
#    include <sys/syscall.h>
#    include <unistd.h>
#endif

namespace ggml_ext_cpu {

namespace {

const char * const NAMES[] = {"scalar", "avx2", "avx512", "neon", "amx"};

#if defined(__x86_64__)

// The processor has INT8 tiles, and the system lets this process use them: Linux gives their state on demand only
// (its documentation, arch/x86/xstate.rst).
bool amx_permitted() {
#    if defined(__linux__)
    constexpr unsigned AMX_TILE = 1u << 24, AMX_INT8 = 1u << 25; // cpuid 7, edx
    constexpr long     ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18;
    unsigned           eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (edx & AMX_TILE) != 0 && (edx & AMX_INT8) != 0 &&
           syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#    else
    return false;
#    endif
}

#endif

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
        case isa::amx:
            return runs(isa::avx512) && amx_permitted();
#elif defined(__aarch64__)
        case isa::neon:
            return true;
#endif
        default:
            return false;
    }
}

isa choose() {
    const isa    best_first[] = {isa::amx, isa::avx512, isa::neon, isa::avx2, isa::scalar};
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
