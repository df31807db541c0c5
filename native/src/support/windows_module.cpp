#if defined(_WIN32)

#    include "support/windows_module.h"

#    include <cstring>

namespace ggml_ext {

std::wstring to_utf16(const char * text) {
    const int    length = static_cast<int>(std::strlen(text));
    std::wstring wide(static_cast<size_t>(MultiByteToWideChar(CP_UTF8, 0, text, length, nullptr, 0)), L'\0');
    MultiByteToWideChar(CP_UTF8, 0, text, length, wide.data(), static_cast<int>(wide.size()));
    return wide;
}

std::string to_utf8(const std::wstring & text) {
    const int   length = static_cast<int>(text.size());
    std::string bytes(static_cast<size_t>(WideCharToMultiByte(CP_UTF8, 0, text.data(), length, nullptr, 0, nullptr, nullptr)), '\0');
    WideCharToMultiByte(CP_UTF8, 0, text.data(), length, bytes.data(), static_cast<int>(bytes.size()), nullptr, nullptr);
    return bytes;
}

HMODULE module_of(const void * address) {
    HMODULE module = nullptr;
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                       static_cast<LPCWSTR>(address), &module);
    return module;
}

std::string file_of(HMODULE module) {
    std::wstring path(MAX_PATH, L'\0');
    for (;;) {
        const DWORD length = GetModuleFileNameW(module, path.data(), static_cast<DWORD>(path.size()));
        if (length < path.size()) { // 0: unloaded meanwhile
            path.resize(length);
            return to_utf8(path);
        }
        path.resize(2 * path.size());
    }
}

} // namespace ggml_ext

#endif
