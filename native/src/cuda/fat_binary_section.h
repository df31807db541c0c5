#pragma once
// Where the file of a compiled CUDA library, ELF or PE, holds its fat binaries.

#include <cstdint>
#include <fstream>

namespace ggml_ext::cuda {

template <typename T> bool read_at(std::ifstream & file, uint64_t offset, T & out) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char *>(&out), sizeof(out));
    return file.good();
}

// Position and size of the section; size 0 where there is none. False: the file is no 64-bit ELF or PE file.
bool find_fat_binary_section(std::ifstream & file, uint64_t & offset, uint64_t & size);

} // namespace ggml_ext::cuda
