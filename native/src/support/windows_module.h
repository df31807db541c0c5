#pragma once
// Windows: what its functions take and give, UTF-16, as the UTF-8 that we use; files of loaded modules.

#include <string>

#include <windows.h>

namespace ggml_ext {

std::wstring to_utf16(const char * text);
std::string  to_utf8(const std::wstring & text);

// that holds the address; NULL where none does
HMODULE module_of(const void * address);

// its path
std::string file_of(HMODULE module);

} // namespace ggml_ext
