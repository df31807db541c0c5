#pragma once
// What CUDA's libraries are called, in the order in which they are tried.

#include <initializer_list>

namespace ggml_ext::cuda {

using names = std::initializer_list<const char *>;

#if defined(_WIN32)
inline constexpr names DRIVER_NAMES{"nvcuda.dll"};
inline constexpr names NVRTC_NAMES_NEWEST_FIRST{"nvrtc64_130_0.dll", "nvrtc64_120_0.dll"};
inline constexpr names NVRTC_NAMES_FOR_12{"nvrtc64_120_0.dll", "nvrtc64_130_0.dll"};
inline constexpr names BLAS_NAMES{"cublas64_13.dll", "cublas64_12.dll", "cublas64_11.dll"};
#else
inline constexpr names DRIVER_NAMES{"libcuda.so.1", "libcuda.so"};
inline constexpr names NVRTC_NAMES_NEWEST_FIRST{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
inline constexpr names NVRTC_NAMES_FOR_12{"libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"};
inline constexpr names BLAS_NAMES{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"};
#endif

} // namespace ggml_ext::cuda
