#include "weights.h"

#include "ggml-ext-kernels/gemm_f32.h"
#include "ggml-ext-kernels/gemm_i8.h"
#include "threads.h"

#if defined(__linux__)
#    include <sys/mman.h>
#endif

namespace cpu_ops {

namespace {

constexpr size_t  LINE       = 64;
constexpr size_t  SMALL      = size_t{32} << 10; // a weight up to this size is printed as a whole
constexpr int64_t PART_ROWS  = 64;
constexpr int64_t MOST_PARTS = 256;
constexpr int64_t ROWS_AHEAD = 24; // prefetched: a print waits for little but memory
constexpr size_t  HUGE_PAGE  = size_t{2} << 20;

// Both halves of a product, so that every bit of either factor counts: sums of products would lose the highest.
uint64_t folded(uint64_t a, uint64_t b) {
    __extension__ using both = unsigned __int128;
    const both product       = both{a} * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t mixed(uint64_t h, const char * bytes, size_t n) {
    constexpr uint64_t keys[8] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93,
                                  0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3};
    uint64_t           words[8];
    if (n == LINE) { // of a fixed size: a few moves instead of a call
        std::memcpy(words, bytes, LINE);
    } else {
        std::memset(words, 0, LINE);
        std::memcpy(words, bytes, n);
    }
    uint64_t sum = 0;
    for (int i = 0; i < 8; i += 2) {
        sum = (sum << 1 | sum >> 63) ^ folded(words[i] ^ keys[i], words[i + 1] ^ keys[i + 1]);
    }
    return folded(h ^ sum, keys[0]);
}

size_t row_bytes(const weight_shape & w) {
    return static_cast<size_t>(w.k) * (w.type == TYPE_I8 ? 1 : sizeof(float));
}

size_t packed_size(const weight_shape & w) {
    return w.type == TYPE_I8 ? ggml_ext_cpu_gemm_i8_packed_size(w.n, w.k) : ggml_ext_cpu_gemm_f32_packed_size(w.n, w.k);
}

} // namespace

// In huge pages where the copy is large enough and the system has them: products with few rows wait for memory, and for the
// translation of its addresses.
packed_weight::memory packed_weight::allocate(size_t size) {
    const std::align_val_t alignment{size < HUGE_PAGE ? ALIGNMENT : HUGE_PAGE};
    memory                 data(::operator new(aligned(size), alignment), free_aligned{alignment});
#if defined(__linux__)
    if (size >= HUGE_PAGE) {
        madvise(data.get(), size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE); // a wish: without huge pages it fails, and nothing is lost
    }
#endif
    return data;
}

packed_weight::sampling::sampling(const weight_shape & w) : lines((row_bytes(w) + LINE - 1) / LINE) {
    const auto rows = static_cast<size_t>(w.n);
    each            = row_bytes(w) * rows <= SMALL ? lines : (lines + rows - 1) / rows;
}

packed_weight::packed_weight(const weight_shape & shape, bool constant)
    : shape_(shape), constant_(constant), size_(packed_size(shape)), sampling_(shape), data_(allocate(size_)),
      parts_(static_cast<size_t>(std::clamp(shape.n / PART_ROWS, int64_t{1}, MOST_PARTS))) {
    const auto n = static_cast<int>(parts_.size());
    for (int i = 0; i < n; ++i) {
        part & p = parts_[static_cast<size_t>(i)];
        shape.type == TYPE_I8 ? ggml_ext_cpu_gemm_i8_pack_share(shape.n, i, n, &p.begin, &p.end)
                              : ggml_ext_cpu_gemm_f32_pack_share(shape.n, i, n, &p.begin, &p.end);
    }
}

int packed_weight::pack(int ith, int nth) {
    return shape_.type == TYPE_I8
               ? ggml_ext_cpu_gemm_i8_pack(shape_.n, shape_.k, static_cast<const int8_t *>(shape_.data), shape_.stride, data_.get(), size_, ith, nth)
               : ggml_ext_cpu_gemm_f32_pack(shape_.n, shape_.k, static_cast<const float *>(shape_.data), shape_.stride, data_.get(), size_, ith, nth);
}

const char * packed_weight::row_of(int64_t i) const {
    return static_cast<const char *>(shape_.data) + static_cast<size_t>(i) * shape_.stride;
}

uint64_t packed_weight::print(const part & p, int64_t fetch_end) const {
    const size_t bytes = row_bytes(shape_);
    uint64_t     h     = 1;
    for (int64_t i = p.begin; i < p.end; ++i) {
        fetch(std::min(i + ROWS_AHEAD, fetch_end - 1));
        size_t line = sampling_.first(i);
        for (size_t n = 0; n < sampling_.each; ++n) {
            h    = mixed(h, row_of(i) + line * LINE, std::min(LINE, bytes - line * LINE));
            line = line + 1 == sampling_.lines ? 0 : line + 1;
        }
    }
    return h;
}

void packed_weight::fetch(int64_t row) const {
    __builtin_prefetch(row_of(row) + sampling_.first(row) * LINE);
}

void packed_weight::forget_changed() {
    std::lock_guard<std::mutex> lock(changes_mutex_);
    if (ggml_ext_weights_changed_since(&version_, shape_.data, static_cast<size_t>(shape_.n - 1) * shape_.stride + row_bytes(shape_))) {
        for (part & p : parts_) {
            std::lock_guard<std::mutex> part_lock(p.mutex);
            p.packed = false;
        }
    }
}

int packed_weight::update(int ith, int nth) {
    if (!constant_) {
        return pack(ith, nth);
    }
    forget_changed();
    const auto n     = static_cast<int64_t>(parts_.size());
    const auto first = n * ith / nth, end = n * (ith + 1) / nth;
    if (first == end) {
        return GGML_EXT_CPU_OK;
    }
    const int64_t first_row = parts_[static_cast<size_t>(first)].begin, end_row = parts_[static_cast<size_t>(end - 1)].end;
    for (int64_t i = first_row; i < std::min(first_row + ROWS_AHEAD, end_row); ++i) {
        fetch(i);
    }
    for (int64_t i = first; i < end; ++i) {
        part &                      p = parts_[static_cast<size_t>(i)];
        std::lock_guard<std::mutex> lock(p.mutex);
        const uint64_t              now = print(p, end_row);
        if (p.packed && p.print == now) {
            continue;
        }
        if (const int status = pack(static_cast<int>(i), static_cast<int>(n)); status != GGML_EXT_CPU_OK) {
            return status;
        }
        p.packed = true;
        p.print  = now;
    }
    return GGML_EXT_CPU_OK;
}

std::shared_ptr<packed_weight> weight_cache::get(const weight_shape & shape) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = all_.begin(); it != all_.end(); ++it) {
        if ((*it)->shape() == shape) {
            all_.splice(all_.begin(), all_, it);
            return all_.front();
        }
    }
    all_.push_front(std::make_shared<packed_weight>(shape, true));
    auto weight = all_.front();
    drop_idle();
    return weight;
}

void weight_cache::drop_idle() {
    size_t idle = 0;
    for (auto it = all_.begin(); it != all_.end();) {
        idle += it->use_count() == 1 ? (*it)->size() : 0;
        it = it->use_count() == 1 && idle > MOST_IDLE ? all_.erase(it) : std::next(it);
    }
}

int weight_slot::update(weight_cache & cache, const ggml_ext_tensor & weight, int ith, int nth) {
    const weight_shape shape{weight.data, weight.ne[1], weight.ne[0], weight.nb[1], weight.type};
    packed_weight *    found;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (weight_ == nullptr || !(weight_->shape() == shape)) {
            weight_ = is_weight(weight) ? cache.get(shape) : std::make_shared<packed_weight>(shape, false);
        }
        found = weight_.get();
    }
    return found->update(ith, nth);
}

} // namespace cpu_ops
