#include "registry/weight_changes.h"

namespace ggml_ext {

namespace {

uintptr_t end_of(uintptr_t begin, size_t size) {
    return size <= UINTPTR_MAX - begin ? begin + size : UINTPTR_MAX;
}

} // namespace

void weight_changes::add(const void * data, size_t size) {
    const auto                  begin = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t              version = version_.load(std::memory_order_relaxed);
    last_[version % KEPT]               = {begin, end_of(begin, size)};
    version_.store(version + 1, std::memory_order_release);
}

bool weight_changes::since(uint64_t & version, const void * data, size_t size) const {
    if (version == version_.load(std::memory_order_acquire)) {
        return false;
    }
    const auto                  begin = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    const uint64_t              now     = version_.load(std::memory_order_relaxed);
    bool                        changed = version == 0 || version > now || now - version > KEPT;
    for (uint64_t v = version; v < now && !changed; ++v) {
        const bytes & b = last_[v % KEPT];
        changed         = b.begin < end_of(begin, size) && begin < b.end;
    }
    version = now;
    return changed;
}

} // namespace ggml_ext
