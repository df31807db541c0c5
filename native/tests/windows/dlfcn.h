#pragma once
// What the tests use of POSIX's loader, on Windows.

#include <windows.h>

#include <filesystem>
#include <string>

enum {
    RTLD_NOW    = 2,
    RTLD_NOLOAD = 4,
    RTLD_LOCAL  = 0
};

inline void * dlopen(const char * path, int mode) {
    const std::wstring wide   = std::filesystem::absolute(std::filesystem::u8path(path)).make_preferred().wstring();
    HMODULE            module = nullptr;
    if ((mode & RTLD_NOLOAD) != 0) {
        GetModuleHandleExW(0, wide.c_str(), &module);
        return module;
    }
    return LoadLibraryExW(wide.c_str(), nullptr, LOAD_WITH_ALTERED_SEARCH_PATH);
}

// of that library alone, not of those that it depends on
inline void * dlsym(void * module, const char * name) {
    return reinterpret_cast<void *>(GetProcAddress(static_cast<HMODULE>(module), name));
}

inline int dlclose(void * module) {
    return FreeLibrary(static_cast<HMODULE>(module)) != 0 ? 0 : -1;
}

inline const char * dlerror() {
    static thread_local std::string text;
    text = "error " + std::to_string(GetLastError());
    return text.c_str();
}
