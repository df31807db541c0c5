#if defined(_WIN32)

#    include "support/images.h"
#    include "support/windows_module.h"

#    define PSAPI_VERSION 2 // in kernel32
#    include <psapi.h>

namespace ggml_ext {

std::vector<std::string> loaded_images() {
    std::vector<HMODULE> modules(256);
    for (DWORD bytes = 0;;) {
        if (EnumProcessModules(GetCurrentProcess(), modules.data(), static_cast<DWORD>(modules.size() * sizeof(HMODULE)), &bytes) == 0) {
            return {};
        }
        const size_t n = bytes / sizeof(HMODULE);
        if (n <= modules.size()) {
            modules.resize(n);
            break;
        }
        modules.resize(2 * n); // more may be loaded meanwhile
    }
    std::vector<std::string> names;
    for (const HMODULE module : modules) {
        if (std::string name = file_of(module); !name.empty()) {
            names.push_back(std::move(name));
        }
    }
    return names;
}

std::vector<memory_range> readable_memory_of(const void * address) {
    const auto base = reinterpret_cast<uintptr_t>(module_of(address));
    if (base == 0) {
        return {};
    }
    const auto * dos     = reinterpret_cast<const IMAGE_DOS_HEADER *>(base);
    const auto * headers = reinterpret_cast<const IMAGE_NT_HEADERS64 *>(base + static_cast<uintptr_t>(dos->e_lfanew));
    const auto * section = IMAGE_FIRST_SECTION(headers);

    std::vector<memory_range> found;
    for (unsigned i = 0; i < headers->FileHeader.NumberOfSections; ++i) {
        if ((section[i].Characteristics & IMAGE_SCN_MEM_READ) != 0) {
            const uintptr_t begin = base + section[i].VirtualAddress;
            found.push_back({begin, begin + section[i].Misc.VirtualSize});
        }
    }
    return found;
}

} // namespace ggml_ext

#endif
