#pragma once
// module_kernels.cu in the forms that a module is made from. A zero follows each.

#include <string_view>

namespace ggml_ext::test {

std::string_view kernels_text();
std::string_view kernels_cubin(); // for compute capability GGML_EXT_TEST_CUBIN_ARCH
std::string_view kernels_fat_binary();
std::string_view kernels_ptx();

} // namespace ggml_ext::test
