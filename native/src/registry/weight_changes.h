#pragma once
// Which memory of weights was reported as written, for kernels that keep copies of it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace ggml_ext {

class weight_changes {
public:
    void add(const void * data, size_t size);

    // Whether any of these bytes were reported after `version`, which becomes the present one; true for version 0.
    bool since(uint64_t & version, const void * data, size_t size) const;

private:
    struct bytes {
        uintptr_t begin, end;
    };
    static constexpr uint64_t KEPT = 4096; // the last ones; who is further behind takes all memory for changed

    mutable std::mutex      mutex_;
    std::atomic<uint64_t>   version_{1};
    std::array<bytes, KEPT> last_{}; // that of version v + 1 at v % KEPT
};

} // namespace ggml_ext
