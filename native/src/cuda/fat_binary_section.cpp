#include "cuda/fat_binary_section.h"

#include "cuda/elf.h"

#include <cstring>

namespace ggml_ext::cuda {

namespace {

bool find_in_elf(std::ifstream & file, uint64_t & offset, uint64_t & size) {
    Elf64_Ehdr elf;
    if (!read_at(file, 0, elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
        elf.e_shentsize != sizeof(Elf64_Shdr)) {
        return false;
    }
    const auto section = [&](unsigned i, Elf64_Shdr & out) { return read_at(file, elf.e_shoff + i * sizeof(Elf64_Shdr), out); };
    Elf64_Shdr names;
    if (!section(elf.e_shstrndx, names)) {
        return false;
    }
    for (unsigned i = 0; i < elf.e_shnum; ++i) {
        Elf64_Shdr header;
        char       name[12] = {};
        if (!section(i, header) || !read_at(file, names.sh_offset + header.sh_name, name)) {
            return false;
        }
        if (std::memcmp(name, ".nv_fatbin", 11) == 0) {
            offset = header.sh_offset;
            size   = header.sh_size;
            return true;
        }
    }
    return true;
}

struct pe_header {
    char     magic[4];
    uint16_t machine, n_sections;
    uint32_t time, symbols, n_symbols;
    uint16_t optional_header_size, characteristics;
};

struct pe_section {
    char     name[8]; // without a zero where it is that long
    uint32_t virtual_size, virtual_address, file_size, file_offset;
    uint32_t more[4];
};

static_assert(sizeof(pe_header) == 24 && sizeof(pe_section) == 40, "as the specification has them");

bool find_in_pe(std::ifstream & file, uint64_t & offset, uint64_t & size) {
    constexpr uint64_t HEADER_AT      = 0x3c;
    constexpr uint16_t MACHINE_X86_64 = 0x8664;

    char      magic[2];
    uint32_t  at = 0;
    pe_header header;
    if (!read_at(file, 0, magic) || std::memcmp(magic, "MZ", 2) != 0 || !read_at(file, HEADER_AT, at) || !read_at(file, at, header) ||
        std::memcmp(header.magic, "PE\0\0", 4) != 0 || header.machine != MACHINE_X86_64) {
        return false;
    }
    for (unsigned i = 0; i < header.n_sections; ++i) {
        pe_section section;
        if (!read_at(file, at + sizeof(header) + header.optional_header_size + i * sizeof(section), section)) {
            return false;
        }
        if (std::memcmp(section.name, ".nv_fatb", 8) == 0) {
            offset = section.file_offset;
            size   = section.file_size;
            return true;
        }
    }
    return true;
}

} // namespace

bool find_fat_binary_section(std::ifstream & file, uint64_t & offset, uint64_t & size) {
    size = 0;
    if (find_in_elf(file, offset, size)) {
        return true;
    }
    file.clear(); // a file shorter than the one's header may still be the other
    return find_in_pe(file, offset, size);
}

} // namespace ggml_ext::cuda
