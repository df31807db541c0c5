#pragma once

// A phase's work in chunks. Each thread begins with its own share and then helps the others, so that a processor which other
// programs slow down does less, and the next barrier does not wait for it.

#include "threads.h"

#include <atomic>
#include <new>

namespace cpu_ops {

constexpr int64_t MOST_CHUNKS_EACH = 8;  // of a thread: the last one is a small part of its share
constexpr int64_t LEAST_CHUNK_ROWS = 72; // of a product: for each chunk its weight is read again

// Into how many chunks each of nth threads cuts its share of `units`, so that none has less than `least`.
inline int32_t chunks_each(int64_t units, int64_t least, int32_t nth) {
    return nth == 1 ? 1 : static_cast<int32_t>(std::clamp(units / (nth * least), int64_t{1}, MOST_CHUNKS_EACH));
}

// The threads' counters, in a step's shared workspace; restarted by each thread in a phase before that in which they are used.
class chunk_queue {
public:
    static size_t size() { return static_cast<size_t>(most_tasks()) * sizeof(share); }

    explicit chunk_queue(void * memory) : shares_(static_cast<share *>(memory)) {}

    void restart(int32_t ith) { new (&shares_[ith]) share; }

    // run(chunk, nth * each) for every chunk that this thread gets to; it returns a kernel status.
    template <typename F> int drain(int32_t each, int32_t ith, int32_t nth, F && run) {
        for (int32_t i = 0; i < nth; ++i) {
            const int32_t owner = (ith + i) % nth;
            for (int32_t c; (c = take(shares_[owner], each)) < each;) {
                if (const int status = run(owner * each + c, nth * each); status != GGML_EXT_CPU_OK) {
                    return status;
                }
            }
        }
        return GGML_EXT_CPU_OK;
    }

private:
    struct alignas(ALIGNMENT) share {
        std::atomic<int32_t> taken{0};
    };

    // Looked at before it is counted up: at the end of a phase each thread asks all others, and writing moves the line each time.
    static int32_t take(share & s, int32_t each) {
        return s.taken.load(std::memory_order_relaxed) < each ? s.taken.fetch_add(1, std::memory_order_relaxed) : each;
    }

    share * shares_;
};

} // namespace cpu_ops
