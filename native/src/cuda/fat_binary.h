#pragma once
// Fat binaries, as nvcc writes them; and COMPAT-3: which devices a compiled CUDA library has code for, read from its file.

#include <cstdint>
#include <string>
#include <vector>

namespace ggml_ext::cuda {

// A fat binary begins with this header; entries follow, each a header of its own and the code.
struct fat_binary_header {
    static constexpr uint32_t MAGIC = 0xba55ed50;

    uint32_t magic;
    uint16_t version;
    uint16_t header_size;
    uint64_t size; // of the entries
};

struct fat_binary_entry {
    uint16_t kind; // 1: PTX, 2: machine code
    uint16_t version;
    uint32_t header_size;
    uint64_t size; // of the code
    uint32_t compressed_size;
    uint32_t options_offset;
    uint16_t code_minor, code_major; // PTX: version of the language
    uint32_t arch;
    uint64_t name;
    uint64_t flags;
};

// One piece of device code in a fat binary.
struct device_code {
    bool ptx;                // else machine code
    int  arch;               // 90: compute capability 9.0
    bool arch_specific;      // as sm_90a: for that capability alone
    int  ptx_major, ptx_minor; // version of the PTX language
};

// All different pieces in a library's file, ELF or PE; a status, INVALID_ARGUMENT where the file cannot be read as such.
int read_device_code(const std::string & path, std::vector<device_code> & out);

// Can a device of this compute capability run it, with a driver of this version (13000: CUDA 13.0)?
bool runs_on(const device_code & code, int major, int minor, int driver_version);

// "sm_86, sm_120a, PTX 9.1 for compute_89"
std::string to_text(const std::vector<device_code> & codes);

} // namespace ggml_ext::cuda
