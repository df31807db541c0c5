#pragma once
// Device code for the fake driver: text inside the containers of the real one. Its kernels are lines
//   .entry NAME SIZES MAX_THREADS STATIC_SHARED        SIZES of the parameters as "8,8,4", "-" for none

#include "cuda/elf.h"
#include "cuda/fat_binary.h"

#include <cstring>
#include <string>

namespace fake {

template <typename T> std::string bytes_of(const T & value) {
    return std::string(reinterpret_cast<const char *>(&value), sizeof(value));
}

inline std::string cubin(const std::string & text) {
    const std::string names("\0.text\0.shstrtab", 17);
    Elf64_Ehdr        elf{};
    std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
    elf.e_ident[EI_CLASS] = ELFCLASS64;
    elf.e_machine         = 190;
    elf.e_shentsize       = sizeof(Elf64_Shdr);
    elf.e_shnum           = 3;
    elf.e_shstrndx        = 2;
    elf.e_shoff           = sizeof(elf) + text.size() + names.size();
    Elf64_Shdr code{}, strings{};
    code.sh_name      = 1;
    code.sh_type      = SHT_PROGBITS;
    code.sh_offset    = sizeof(elf);
    code.sh_size      = text.size();
    strings.sh_name   = 7;
    strings.sh_type   = SHT_STRTAB;
    strings.sh_offset = code.sh_offset + text.size();
    strings.sh_size   = names.size();
    return bytes_of(elf) + text + names + bytes_of(Elf64_Shdr{}) + bytes_of(code) + bytes_of(strings);
}

inline std::string fat_binary(const std::string & text) {
    ggml_ext::cuda::fat_binary_entry entry{};
    entry.kind        = 2;
    entry.header_size = sizeof(entry);
    entry.size        = text.size();
    entry.arch        = 90;
    const ggml_ext::cuda::fat_binary_header header{ggml_ext::cuda::fat_binary_header::MAGIC, 1, 16, sizeof(entry) + text.size()};
    return bytes_of(header) + bytes_of(entry) + text;
}

inline std::string ptx(const std::string & text) {
    return ".version 8.0\n.target sm_80\n" + text;
}

} // namespace fake
