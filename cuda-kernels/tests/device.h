#pragma once

// What the families' tests share: seeded inputs, and device memory with guards, poisoned before every use.

#include "ggml-ext-cuda-kernels.h"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace test {

inline std::vector<float> uniform(int64_t n, unsigned seed, float low = -1.0f, float high = 1.0f) {
    std::mt19937                          random(seed);
    std::uniform_real_distribution<float> range(low, high);
    std::vector<float>                    v(static_cast<std::size_t>(n));
    for (float & f : v) {
        f = range(random);
    }
    return v;
}

// n elements between two guards. Every byte is 0x7E at first: a huge float, an int8 that no small input gives.
template <typename T> class device {
public:
    explicit device(int64_t n) : bytes_(static_cast<std::size_t>(n) * sizeof(T)) {
        REQUIRE(cudaMalloc(reinterpret_cast<void **>(&memory_), bytes_ + 2 * GUARD) == cudaSuccess);
        poison();
    }

    explicit device(const std::vector<T> & values) : device(static_cast<int64_t>(values.size())) {
        REQUIRE(cudaMemcpy(data(), values.data(), bytes_, cudaMemcpyHostToDevice) == cudaSuccess);
    }

    device(const device &)             = delete;
    device & operator=(const device &) = delete;

    ~device() { cudaFree(memory_); }

    T * data() const { return reinterpret_cast<T *>(memory_ + GUARD); }

    std::size_t bytes() const { return bytes_; }

    // Complete on return, for work on any stream.
    void poison() {
        REQUIRE(cudaMemset(memory_, POISON, bytes_ + 2 * GUARD) == cudaSuccess);
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    }

    // The elements, after all work on the device; both guards must be as they were.
    std::vector<T> get() const {
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
        std::vector<char> all(bytes_ + 2 * GUARD);
        REQUIRE(cudaMemcpy(all.data(), memory_, all.size(), cudaMemcpyDeviceToHost) == cudaSuccess);
        bool intact = true;
        for (std::size_t i = 0; i < GUARD; i++) {
            intact = intact && all[i] == POISON && all[GUARD + bytes_ + i] == POISON;
        }
        CHECK_MESSAGE(intact, "a kernel wrote outside its output");
        std::vector<T> values(bytes_ / sizeof(T));
        std::memcpy(values.data(), all.data() + GUARD, bytes_);
        return values;
    }

private:
    static constexpr std::size_t GUARD  = 256;
    static constexpr char        POISON = 0x7E;

    char *      memory_ = nullptr;
    std::size_t bytes_;
};

// The bytes of an element that no kernel wrote.
template <typename T> T poison() {
    T v;
    std::memset(&v, 0x7E, sizeof(v));
    return v;
}

} // namespace test
