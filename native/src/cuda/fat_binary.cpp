#include "cuda/fat_binary.h"

#include "cuda/fat_binary_section.h"
#include "support/status.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <tuple>

namespace ggml_ext::cuda {

namespace {

constexpr uint16_t KIND_PTX           = 1;
constexpr uint16_t KIND_MACHINE_CODE  = 2;
constexpr uint64_t FLAG_ARCH_SPECIFIC = 0x100000; // sm_90a

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
    std::ifstream file(std::filesystem::u8path(path), std::ios::binary);
    uint64_t      at = 0, size = 0;
    if (!file || !find_fat_binary_section(file, at, size)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "'%s' cannot be read as a 64-bit ELF or PE file", path.c_str());
    }
    const uint64_t    end = at + size;
    fat_binary_header container;
    while (at + sizeof(container) <= end && read_at(file, at, container)) {
        if (container.magic != fat_binary_header::MAGIC || container.header_size < sizeof(container)) {
            at += 8; // padding between fat binaries
            continue;
        }
        uint64_t         next    = std::min(end, at + container.header_size);
        const uint64_t   the_end = next + std::min(end - next, container.size); // sizes of a damaged file may be any
        fat_binary_entry entry;
        while (next + sizeof(entry) <= the_end && read_at(file, next, entry) && entry.header_size >= sizeof(entry)) {
            if (entry.kind == KIND_PTX || entry.kind == KIND_MACHINE_CODE) {
                const bool ptx = entry.kind == KIND_PTX;
                out.push_back({ptx, static_cast<int>(entry.arch), (entry.flags & FLAG_ARCH_SPECIFIC) != 0, ptx ? entry.code_major : 0,
                               ptx ? entry.code_minor : 0});
            }
            next += entry.header_size + std::min(the_end - next, entry.size);
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
