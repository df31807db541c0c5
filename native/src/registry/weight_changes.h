#pragma once
// Which memory of weights was reported as written, for kernels that keep copies of it.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace ggml_ext {

class weight_changes {
public:
    void add(const void * data, size_t size);

    // The same for what graphs write: left out where since was never asked about any of these bytes. A graph writes much, caches of keys
    // and values for example, and reports of memory that nobody has a copy of would crowd out the others.
    void add_where_kept(const void * data, size_t size);

    // Whether any of these bytes were reported after `version`, which becomes the present one; true for version 0.
    bool since(uint64_t & version, const void * data, size_t size);

private:
    struct bytes {
        uintptr_t begin, end;
    };
    static constexpr uint64_t KEPT = 4096; // the last ones; who is further behind takes all memory for changed

    void add_locked(bytes b);
    void keep_locked(bytes b);

    std::mutex                     mutex_;
    std::atomic<uint64_t>          version_{1};
    std::array<bytes, KEPT>        last_{}; // that of version v + 1 at v % KEPT
    std::map<uintptr_t, uintptr_t> kept_;   // what since was asked about: begins and ends, disjoint; nothing is ever taken out
};

} // namespace ggml_ext
