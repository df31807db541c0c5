#pragma once

// Which instruction set this process runs, and how an entry point finds its kernels.

#include "ggml-ext-kernels/common.h"

namespace ggml_ext_cpu {

// amx: the families that have no kernel of their own for it run AVX-512's
enum class isa : int32_t {
    scalar,
    avx2,
    avx512,
    neon,
    amx
};

isa active_isa();

} // namespace ggml_ext_cpu

// GGML_EXT_DECLARE_KERNELS(type, name) declares the table `name` of each instruction set;
// GGML_EXT_SELECT(name) is the active one; GGML_EXT_KERNELS(name) names the one being compiled.
#define GGML_EXT_KERNELS_3(name, isa) name##_##isa
#define GGML_EXT_KERNELS_2(name, isa) GGML_EXT_KERNELS_3(name, isa)
#define GGML_EXT_KERNELS(name) GGML_EXT_KERNELS_2(name, GGML_EXT_ISA)

#if defined(__x86_64__)
#    define GGML_EXT_DECLARE_KERNELS(type, name) \
        extern const type name##_scalar;         \
        extern const type name##_avx2;           \
        extern const type name##_avx512
#    define GGML_EXT_SELECT(name)                                                  \
        (ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::amx      ? name##_avx512 \
         : ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::avx512 ? name##_avx512 \
         : ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::avx2   ? name##_avx2   \
                                                                   : name##_scalar)
#elif defined(__aarch64__)
#    define GGML_EXT_DECLARE_KERNELS(type, name) \
        extern const type name##_scalar;         \
        extern const type name##_neon
#    define GGML_EXT_SELECT(name) (ggml_ext_cpu::active_isa() == ggml_ext_cpu::isa::neon ? name##_neon : name##_scalar)
#else
#    define GGML_EXT_DECLARE_KERNELS(type, name) extern const type name##_scalar
#    define GGML_EXT_SELECT(name) name##_scalar
#endif
