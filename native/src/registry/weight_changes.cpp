#include "registry/weight_changes.h"

#include <algorithm>
#include <iterator>

namespace ggml_ext {

namespace {

uintptr_t end_of(uintptr_t begin, size_t size) {
    return size <= UINTPTR_MAX - begin ? begin + size : UINTPTR_MAX;
}

} // namespace

void weight_changes::add(const void * data, size_t size) {
    const auto                  begin = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    add_locked({begin, end_of(begin, size)});
}

void weight_changes::add_where_kept(const void * data, size_t size) {
    const auto                  begin = reinterpret_cast<uintptr_t>(data);
    const uintptr_t             end   = end_of(begin, size);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto                  behind = kept_.lower_bound(end); // ranges are disjoint: the one before it is the last that may reach in
    if (behind != kept_.begin() && std::prev(behind)->second > begin) {
        add_locked({begin, end});
    }
}

void weight_changes::add_locked(bytes b) {
    const uint64_t version = version_.load(std::memory_order_relaxed);
    last_[version % KEPT]  = b;
    version_.store(version + 1, std::memory_order_release);
}

void weight_changes::keep_locked(bytes b) {
    auto at = kept_.upper_bound(b.begin);
    if (at != kept_.begin() && std::prev(at)->second >= b.begin) {
        --at;
    }
    while (at != kept_.end() && at->first <= b.end) { // touches b
        b.begin = std::min(b.begin, at->first);
        b.end   = std::max(b.end, at->second);
        at      = kept_.erase(at);
    }
    kept_.emplace_hint(at, b.begin, b.end);
}

bool weight_changes::since(uint64_t & version, const void * data, size_t size) {
    if (version == version_.load(std::memory_order_acquire)) {
        return false;
    }
    const auto                  begin = reinterpret_cast<uintptr_t>(data);
    std::lock_guard<std::mutex> lock(mutex_);
    if (version == 0) {
        keep_locked({begin, end_of(begin, size)});
    }
    const uint64_t now     = version_.load(std::memory_order_relaxed);
    bool           changed = version == 0 || version > now || now - version > KEPT;
    for (uint64_t v = version; v < now && !changed; ++v) {
        const bytes & b = last_[v % KEPT];
        changed         = b.begin < end_of(begin, size) && begin < b.end;
    }
    version = now;
    return changed;
}

} // namespace ggml_ext
