#include "cuda/fat_binary.h"

#include "support/status.h"

#if defined(__linux__)
#    include <elf.h>
#endif

#include <algorithm>
#include <cstring>
#include <fstream>
#include <tuple>

namespace ggml_ext::cuda {

namespace {

constexpr uint16_t KIND_PTX           = 1;
constexpr uint16_t KIND_MACHINE_CODE  = 2;
constexpr uint64_t FLAG_ARCH_SPECIFIC = 0x100000; // sm_90a

template <typename T> bool read_at(std::ifstream & file, uint64_t offset, T & out) {
    file.seekg(static_cast<std::streamoff>(offset));
    file.read(reinterpret_cast<char *>(&out), sizeof(out));
    return file.good();
}

#if defined(__linux__)
// Position and size of the section of fat binaries; size 0 where there is none.
bool find_section(std::ifstream & file, uint64_t & offset, uint64_t & size) {
    Elf64_Ehdr elf;
    size = 0;
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
#else
// ggml's CUDA library is an ELF file, or there is none.
bool find_section(std::ifstream &, uint64_t &, uint64_t &) { return false; }
#endif

auto order(const device_code & c) {
    return std::make_tuple(c.ptx, c.arch, c.arch_specific, c.ptx_major, c.ptx_minor);
}

// The newest PTX that a driver's compiler takes: 7.x with CUDA 11.x, and so on; CUDA 12.6 and later lag behind by one.
std::pair<int, int> newest_ptx(int driver_version) {
    const int major = driver_version / 1000;
    const int minor = driver_version % 1000 / 10;
    return {major - 4, major == 12 && minor >= 6 ? minor - 1 : minor};
}

} // namespace

int read_device_code(const std::string & path, std::vector<device_code> & out) {
    std::ifstream file(path, std::ios::binary);
    uint64_t      at = 0, size = 0;
    if (!file || !find_section(file, at, size)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "'%s' cannot be read as a 64-bit ELF file", path.c_str());
    }
    const uint64_t    end = at + size;
    fat_binary_header container;
    while (at + sizeof(container) <= end && read_at(file, at, container)) {
        if (container.magic != fat_binary_header::MAGIC || container.header_size < sizeof(container)) {
            at += 8; // padding between fat binaries
            continue;
        }
        uint64_t         next    = at + container.header_size;
        const uint64_t   the_end = std::min(end, next + container.size);
        fat_binary_entry entry;
        while (next + sizeof(entry) <= the_end && read_at(file, next, entry) && entry.header_size >= sizeof(entry)) {
            if (entry.kind == KIND_PTX || entry.kind == KIND_MACHINE_CODE) {
                const bool ptx = entry.kind == KIND_PTX;
                out.push_back({ptx, static_cast<int>(entry.arch), (entry.flags & FLAG_ARCH_SPECIFIC) != 0, ptx ? entry.code_major : 0,
                               ptx ? entry.code_minor : 0});
            }
            next += entry.header_size + entry.size;
        }
        at = the_end;
    }
    std::sort(out.begin(), out.end(), [](const device_code & a, const device_code & b) { return order(a) < order(b); });
    out.erase(std::unique(out.begin(), out.end(), [](const device_code & a, const device_code & b) { return order(a) == order(b); }),
              out.end());
    return GGML_EXT_STATUS_SUCCESS;
}

bool runs_on(const device_code & code, int major, int minor, int driver_version) {
    const int capability = major * 10 + minor;
    if (code.arch_specific) {
        if (code.arch != capability) {
            return false;
        }
    } else if (code.ptx ? code.arch > capability : code.arch / 10 != major || code.arch > capability) {
        return false;
    }
    return !code.ptx || std::make_pair(code.ptx_major, code.ptx_minor) <= newest_ptx(driver_version);
}

std::string to_text(const std::vector<device_code> & codes) {
    std::string text;
    for (const device_code & c : codes) {
        text += text.empty() ? "" : ", ";
        const char * suffix = c.arch_specific ? "a" : "";
        text += c.ptx ? format("PTX %d.%d for compute_%d%s", c.ptx_major, c.ptx_minor, c.arch, suffix) : format("sm_%d%s", c.arch, suffix);
    }
    return text.empty() ? "none" : text;
}

} // namespace ggml_ext::cuda
