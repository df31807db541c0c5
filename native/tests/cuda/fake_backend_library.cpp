// A backend library of ggml, for programs that load backends themselves: GGML_BACKEND_PATH has it loaded behind the CPU's. It brings
// two CUDA devices of the fake driver. CUDA0 computes, also the kernels below, which programs compile from text that begins as the
// functions here do; for CUDA1 ggml's CUDA library has no code.

#include "cuda/fake_device.h"
#include "fake_cuda.h"
#include "support/table_words.h"

#include <link.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using namespace ggml_ext::test;

ggml_backend_device * devices[2];

template <typename T> T argument(const fake_cuda_kernel_run * r, int index) {
    T value;
    std::memcpy(&value, r->args[index], sizeof(value));
    return value;
}

// elements that a grid of threads reaches, one each
int64_t reached(const fake_cuda_kernel_run * r, int64_t n) {
    return std::min(n, int64_t{r->grid[0]} * r->block[0]);
}

// test_affine(const float * x, float * y, float a, float b, long long n)
void affine(const fake_cuda_kernel_run * r) {
    const auto * x = argument<const float *>(r, 0);
    auto *       y = argument<float *>(r, 1);
    for (int64_t i = 0; i < reached(r, argument<int64_t>(r, 4)); ++i) {
        y[i] = argument<float>(r, 2) * x[i] + argument<float>(r, 3);
    }
}

// test_values(const float * x, float * y, int a, long long b, float c, double d)
void values(const fake_cuda_kernel_run * r) {
    const auto * x   = argument<const float *>(r, 0);
    auto *       y   = argument<float *>(r, 1);
    const double sum = argument<int32_t>(r, 2) + 10.0 * static_cast<double>(argument<int64_t>(r, 3)) + 100.0 * argument<float>(r, 4) +
                       1000.0 * argument<double>(r, 5);
    for (int64_t i = 0; i < reached(r, INT64_MAX); ++i) {
        y[i] = static_cast<float>(sum * x[i]);
    }
}

// test_mul_add(const float * x, const float * w, const float * c, float * y, long long n)
void mul_add(const fake_cuda_kernel_run * r) {
    for (int64_t i = 0; i < reached(r, argument<int64_t>(r, 4)); ++i) {
        argument<float *>(r, 3)[i] = argument<const float *>(r, 0)[i] * argument<const float *>(r, 1)[i] + argument<const float *>(r, 2)[i];
    }
}

// swish(const float * x, float * y, float beta, long long n)
void swish(const fake_cuda_kernel_run * r) {
    const auto * x = argument<const float *>(r, 0);
    for (int64_t i = 0; i < reached(r, argument<int64_t>(r, 3)); ++i) {
        argument<float *>(r, 1)[i] = x[i] / (1.0f + std::exp(-argument<float>(r, 2) * x[i]));
    }
}

// The ggml that loads us is the one that the devices are made from.
std::string folder_of_ggml() {
    std::string folder;
    dl_iterate_phdr(
        [](dl_phdr_info * info, size_t, void * out) {
            const std::string path = info->dlpi_name;
            const size_t      name = path.rfind("/libggml-base.so");
            if (name != std::string::npos) {
                *static_cast<std::string *>(out) = path.substr(0, name);
            }
            return name != std::string::npos ? 1 : 0;
        },
        &folder);
    return folder;
}

} // namespace

extern "C" __attribute__((visibility("default"))) ggml_backend_reg * ggml_backend_init() {
    setenv("GGML_EXT_TEST_GGML_DIR", folder_of_ggml().c_str(), 1);
    fake_cuda_set_kernel("test_affine", affine);
    fake_cuda_set_kernel("test_values", values);
    fake_cuda_set_kernel("test_mul_add", mul_add);
    fake_cuda_set_kernel("swish", swish);
    cuda_device_options refused;
    refused.library = "fake_ggml_cuda_others";
    refused.bus     = "0000:04:00.0";
    refused.name    = "CUDA1";
    devices[0]      = new_cuda_device();
    devices[1]      = new_cuda_device(refused);

    const auto count                                 = find_in_base<size_t (*)(void *)>("ggml_backend_reg_dev_count");
    const auto get                                   = find_in_base<void * (*) (void *, size_t)>("ggml_backend_reg_dev_get");
    auto *     reg                                   = stock().base.ggml_backend_dev_backend_reg(devices[0]);
    auto **    table                                 = reinterpret_cast<void **>(reg);
    table[word_called([&](void * r) { count(r); })]  = reinterpret_cast<void *>(+[](void *) -> size_t { return std::size(devices); });
    table[word_called([&](void * r) { get(r, 0); })] = reinterpret_cast<void *>(+[](void *, size_t i) { return devices[i]; });
    return reg;
}
