#if defined(_WIN32)

#    include "support/images.h"
#    include "support/shared_library.h"
#    include "support/windows_module.h"

#    include <iterator>

namespace ggml_ext {

namespace {

thread_local DWORD last_failure = ERROR_SUCCESS;

HMODULE remember(HMODULE module) {
    if (module == nullptr) {
        last_failure = GetLastError();
    }
    return module;
}

bool has_folder(const char * name) {
    return std::string(name).find_first_of("/\\") != std::string::npos;
}

// as the loader compares it with those of loaded modules
std::wstring full_path(const char * path) {
    const std::wstring wide = to_utf16(path);
    std::wstring       full(GetFullPathNameW(wide.c_str(), 0, nullptr, nullptr), L'\0');
    full.resize(GetFullPathNameW(wide.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
    return full;
}

} // namespace

shared_library::~shared_library() {
    if (handle_ != nullptr) {
        FreeLibrary(static_cast<HMODULE>(handle_));
    }
}

bool shared_library::load(const char * path) {
    // What lies beside a library that is given by its path is found; a bare name is looked for in the system's places.
    handle_ = remember(has_folder(path) ? LoadLibraryExW(full_path(path).c_str(), nullptr, LOAD_WITH_ALTERED_SEARCH_PATH)
                                        : LoadLibraryW(to_utf16(path).c_str()));
    return handle_ != nullptr;
}

bool shared_library::open_loaded(const char * path) {
    HMODULE module = nullptr;
    GetModuleHandleExW(0, has_folder(path) ? full_path(path).c_str() : to_utf16(path).c_str(), &module);
    return (handle_ = remember(module)) != nullptr;
}

void * shared_library::find(const char * name) const {
    if (handle_ != nullptr) {
        return reinterpret_cast<void *>(GetProcAddress(static_cast<HMODULE>(handle_), name));
    }
    // Names belong to modules here; every module's are visible.
    for (const std::string & file : loaded_images()) {
        shared_library module;
        if (void * found = module.open_loaded(file.c_str()) ? module.find(name) : nullptr; found != nullptr) {
            return found;
        }
    }
    return nullptr;
}

std::string loader_error() {
    wchar_t     text[512];
    const DWORD length = FormatMessageW(FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS | FORMAT_MESSAGE_MAX_WIDTH_MASK, nullptr,
                                        last_failure, 0, text, static_cast<DWORD>(std::size(text)), nullptr);
    return to_utf8(std::wstring(text, length)) + "(error " + std::to_string(last_failure) + ")";
}

image image_of(const void * address) {
    const HMODULE module = module_of(address);
    return module != nullptr ? image{file_of(module), module} : image{};
}

} // namespace ggml_ext

#endif
