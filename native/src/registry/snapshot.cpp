#include "registry/registry.h"

namespace ggml_ext {

const std::vector<kernel_ptr> & snapshot::singles(int32_t op_id, const op_registration * op) const {
    static const std::vector<kernel_ptr> none;
    if (op != nullptr) {
        const auto found = single_custom.find(op);
        return found == single_custom.end() ? none : found->second;
    }
    return serves(op_id) ? single_builtin[op_id] : none;
}

namespace {
const snapshot & empty_snapshot() {
    static const snapshot instance;
    return instance;
}
} // namespace

// The counter goes up before the pointer is read, and a writer swaps the pointer before it reads the counter (all
// sequentially consistent): a writer that sees no reader knows that none can hold what it retired.
snapshot_cell::pin::pin(const snapshot_cell & cell) : cell_(cell) {
    cell_.readers_.fetch_add(1);
    const snapshot * current = cell_.current_.load();
    snapshot_                = current != nullptr ? current : &empty_snapshot();
}

snapshot_cell::pin::~pin() {
    if (cell_.readers_.fetch_sub(1) == 1 && cell_.has_retired_.load(std::memory_order_relaxed)) {
        cell_.collect();
    }
}

snapshot_cell::~snapshot_cell() {
    delete current_.load();
}

void snapshot_cell::store(std::unique_ptr<const snapshot> next) {
    const bool empty = next == nullptr || next->empty();
    for (uint32_t word = 0; word < MAX_OPS / 64; ++word) {
        uint64_t bits = 0;
        for (uint32_t bit = 0; next != nullptr && bit < 64; ++bit) {
            bits |= static_cast<uint64_t>(next->serves(static_cast<int32_t>(word * 64 + bit))) << bit;
        }
        offered_[word].store(bits);
    }
    std::unique_ptr<const snapshot> old(current_.exchange(next.release()));
    empty_.store(empty);
    if (old != nullptr) {
        std::lock_guard<std::mutex> lock(mutex_);
        retired_.push_back(std::move(old));
        has_retired_.store(true);
    }
}

void snapshot_cell::collect() const {
    std::vector<std::unique_ptr<const snapshot>> free_now; // destroyed outside the lock: it may call release callbacks
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (readers_.load() == 0) {
            free_now.swap(retired_);
            has_retired_.store(false);
        }
    }
}

} // namespace ggml_ext
