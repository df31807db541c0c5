#include "cuda/image.h"

#include "cuda/elf.h"
#include "cuda/fat_binary.h"
#include "support/status.h"

#include <cstring>
#include <string_view>

namespace ggml_ext::cuda {

namespace {

constexpr uint16_t MACHINE_CUDA = 190;

int refuse(const std::string & why) {
    return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: %s", why.c_str());
}

template <typename T> bool read_at(std::string_view bytes, uint64_t offset, T & out) {
    if (offset > bytes.size() || bytes.size() - offset < sizeof(out)) {
        return false;
    }
    std::memcpy(&out, bytes.data() + offset, sizeof(out));
    return true;
}

bool is_inside(std::string_view bytes, uint64_t offset, uint64_t size) {
    return offset <= bytes.size() && size <= bytes.size() - offset;
}

int check_cubin(std::string_view bytes) {
    Elf64_Ehdr elf;
    if (!read_at(bytes, 0, elf)) {
        return refuse(format("the cubin has %zu bytes, fewer than an ELF header", bytes.size()));
    }
    if (elf.e_ident[EI_CLASS] != ELFCLASS64 || elf.e_machine != MACHINE_CUDA) {
        return refuse(format("the image is an ELF file for machine %d, expected %d, CUDA device code", elf.e_machine, MACHINE_CUDA));
    }
    if (elf.e_shnum == 0 || elf.e_shentsize != sizeof(Elf64_Shdr) || elf.e_shstrndx >= elf.e_shnum ||
        (elf.e_phnum != 0 && elf.e_phentsize != sizeof(Elf64_Phdr))) {
        return refuse(format("the cubin's ELF header is not one of a compiler: %d sections of %d bytes, names in section %d", elf.e_shnum,
                             elf.e_shentsize, elf.e_shstrndx));
    }
    for (unsigned i = 0; i < elf.e_shnum; ++i) {
        Elf64_Shdr section;
        if (!read_at(bytes, elf.e_shoff + i * sizeof(section), section) ||
            (section.sh_type != SHT_NOBITS && !is_inside(bytes, section.sh_offset, section.sh_size))) {
            return refuse(format("the cubin is cut off: section %u of %d lies outside of its %zu bytes", i, elf.e_shnum, bytes.size()));
        }
    }
    for (unsigned i = 0; i < elf.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!read_at(bytes, elf.e_phoff + i * sizeof(segment), segment) || !is_inside(bytes, segment.p_offset, segment.p_filesz)) {
            return refuse(format("the cubin is cut off: segment %u of %d lies outside of its %zu bytes", i, elf.e_phnum, bytes.size()));
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int check_fat_binary(std::string_view bytes) {
    fat_binary_header header;
    if (!read_at(bytes, 0, header) || header.header_size < sizeof(header) ||
        !is_inside(bytes, header.header_size, header.size)) {
        return refuse(format("the fat binary is cut off: its header says more than the %zu bytes that there are", bytes.size()));
    }
    const std::string_view entries = bytes.substr(header.header_size, header.size);
    uint64_t               next    = 0;
    while (next < entries.size()) {
        fat_binary_entry entry;
        if (!read_at(entries, next, entry) || entry.header_size < sizeof(entry) || !is_inside(entries, next, entry.header_size) ||
            !is_inside(entries, next + entry.header_size, entry.size)) {
            return refuse(format("the fat binary's entry at byte %zu is not whole", static_cast<size_t>(header.header_size + next)));
        }
        next += entry.header_size + entry.size;
    }
    return entries.empty() ? refuse("the fat binary holds no code") : static_cast<int>(GGML_EXT_STATUS_SUCCESS);
}

// "0x7b 0x22 0x61 ... ('{"a...')"
std::string beginning(std::string_view bytes) {
    std::string hex, text;
    for (const char c : bytes.substr(0, 8)) {
        hex += format("%s0x%02x", hex.empty() ? "" : " ", static_cast<unsigned char>(c));
        text += c >= ' ' && c <= '~' ? c : '.';
    }
    return hex + " ('" + text + "')";
}

} // namespace

int check_image(const void * image, size_t size) {
    if (image == nullptr || size == 0) {
        return refuse(image == nullptr ? "image is NULL" : "size is 0, expected the bytes of a cubin, a fat binary or PTX text");
    }
    const std::string_view bytes(static_cast<const char *>(image), size);
    uint32_t               magic = 0;
    read_at(bytes, 0, magic);
    if (std::memcmp(&magic, ELFMAG, SELFMAG) == 0) {
        return check_cubin(bytes);
    }
    if (magic == fat_binary_header::MAGIC) {
        return check_fat_binary(bytes);
    }
    if (bytes.find(".version") == std::string_view::npos) {
        return refuse(format("the %zu bytes are no cubin, no fat binary and no PTX text (it has no .version): they begin with %s", size,
                             beginning(bytes).c_str()));
    }
    const size_t zero = bytes.find('\0');
    if (zero != std::string_view::npos && zero + 1 < size) {
        return refuse(format("PTX text of %zu bytes has a zero at byte %zu", size, zero));
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace ggml_ext::cuda
