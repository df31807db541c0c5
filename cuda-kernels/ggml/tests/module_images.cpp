// Files that the build made, as bytes of this program.

#include "module_images.h"

// a zero follows each, which is not counted
#define EMBED(name, file)                                                                                                   \
    __asm__(".section .rodata, \"a\"\n.balign 16\n" #name "_begin:\n.incbin \"" file "\"\n" #name "_end:\n.byte 0\n.text\n" \
            ".global " #name "_begin, " #name "_end\n");                                                                    \
    extern "C" const char name##_begin[], name##_end[];

EMBED(module_text, GGML_EXT_TEST_MODULE_TEXT)
EMBED(module_cubin, GGML_EXT_TEST_MODULE_CUBIN)
EMBED(module_fat_binary, GGML_EXT_TEST_MODULE_FAT_BINARY)
EMBED(module_ptx, GGML_EXT_TEST_MODULE_PTX)

namespace ggml_ext::test {

#define BYTES(name) std::string_view(name##_begin, static_cast<size_t>(name##_end - name##_begin))

std::string_view kernels_text() {
    return BYTES(module_text);
}

std::string_view kernels_cubin() {
    return BYTES(module_cubin);
}

std::string_view kernels_fat_binary() {
    return BYTES(module_fat_binary);
}

std::string_view kernels_ptx() {
    return BYTES(module_ptx);
}

} // namespace ggml_ext::test
