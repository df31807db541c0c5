#ifndef GGML_EXT_KERNELS_COMMON_H
#define GGML_EXT_KERNELS_COMMON_H

// What all CPU kernel families share. Nothing here or in the family headers knows ggml:
// kernels get raw pointers, strides in bytes, and their place (ith of nth) in a thread pool.
//
// Every kernel entry follows the same rules:
//   - where it takes ith and nth, it is called once by each of nth threads with the same arguments and its own
//     ith; it works on a static share of the output and needs no barrier; no entry allocates;
//   - scratch is memory of the calling thread alone, of at least the family's ..._scratch_size bytes;
//   - it returns GGML_EXT_CPU_OK or a status, and writes nothing where it returns a status;
//   - pointers and strides are multiples of their element's size, those of scratch and packed weights of four
//     bytes, else it is GGML_EXT_CPU_INVALID_ARGUMENT; int8 may lie anywhere;
//   - outputs must not overlap inputs unless the entry says so.

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ggml_ext_cpu_status {
    GGML_EXT_CPU_OK               = 0,
    GGML_EXT_CPU_INVALID_ARGUMENT = 1, // a null or unaligned pointer, an extent below 1 or too large to count, a stride below the row, ith >= nth
    GGML_EXT_CPU_SMALL_BUFFER     = 2, // scratch or packed buffer is smaller than its size function says
    GGML_EXT_CPU_WRONG_PACKING    = 3, // packed weights of other extents, another kind or another instruction set
    GGML_EXT_CPU_UNSUPPORTED      = 4, // valid, but outside what the kernel computes exactly
};

// A sentence in English for a status; never NULL.
const char * ggml_ext_cpu_status_text(int status);

// The instruction set that all kernels of this process use: "scalar", "avx2", "avx512", "amx" or "neon".
// avx512 means F, BW, DQ, VL and VNNI together; amx adds INT8 tiles, which gemm_i8 uses. The environment variable GGML_EXT_CPU_ISA, read once,
// lowers the choice; a value that the machine cannot run is ignored.
const char * ggml_ext_cpu_isa(void);

enum ggml_ext_cpu_activation {
    GGML_EXT_CPU_ACT_NONE     = 0,
    GGML_EXT_CPU_ACT_GELU_ERF = 1,
};

#ifdef __cplusplus
}
#endif

#endif
