#pragma once
// The parts of 64-bit ELF files that are read here, by the names of the specification; the system's own header where it has one.

#if __has_include(<elf.h>)
#    include <elf.h>
#else

#    include <cstdint>

struct Elf64_Ehdr {
    unsigned char e_ident[16];
    uint16_t      e_type, e_machine;
    uint32_t      e_version;
    uint64_t      e_entry, e_phoff, e_shoff;
    uint32_t      e_flags;
    uint16_t      e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx;
};

struct Elf64_Shdr {
    uint32_t sh_name, sh_type;
    uint64_t sh_flags, sh_addr, sh_offset, sh_size;
    uint32_t sh_link, sh_info;
    uint64_t sh_addralign, sh_entsize;
};

struct Elf64_Phdr {
    uint32_t p_type, p_flags;
    uint64_t p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align;
};

static_assert(sizeof(Elf64_Ehdr) == 64 && sizeof(Elf64_Shdr) == 64 && sizeof(Elf64_Phdr) == 56, "as the specification has them");

inline constexpr char ELFMAG[] = "\177ELF";
inline constexpr int  SELFMAG  = 4;

enum {
    EI_CLASS     = 4,
    ELFCLASS32   = 1,
    ELFCLASS64   = 2,
    EM_X86_64    = 62,
    SHT_PROGBITS = 1,
    SHT_STRTAB   = 3,
    SHT_NOBITS   = 8
};

#endif
