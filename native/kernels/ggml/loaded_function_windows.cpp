#if defined(_WIN32)

#    include "loaded_function.h"

#    include <windows.h>

#    define PSAPI_VERSION 2 // in kernel32
#    include <psapi.h>

#    include <algorithm>
#    include <iterator>

namespace cpu_ops {

void * find_loaded(const char * symbol) {
    HMODULE modules[1024];
    DWORD   bytes = 0;
    if (EnumProcessModules(GetCurrentProcess(), modules, sizeof(modules), &bytes) == 0) {
        return nullptr;
    }
    const size_t n = std::min(bytes / sizeof(HMODULE), std::size(modules));
    for (size_t i = 0; i < n; ++i) {
        if (const FARPROC found = GetProcAddress(modules[i], symbol); found != nullptr) {
            return reinterpret_cast<void *>(found);
        }
    }
    return nullptr;
}

} // namespace cpu_ops

#endif
