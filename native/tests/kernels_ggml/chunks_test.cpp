#include "chunks.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace cpu_ops;

namespace {

struct alignas(ALIGNMENT) line {
    char bytes[ALIGNMENT];
};

// A queue as a step has it, restarted for nth threads.
struct step {
    std::vector<line> memory{chunk_queue::size() / ALIGNMENT + 8};
    chunk_queue       queue{memory.data()};

    explicit step(int32_t nth) {
        for (int32_t i = 0; i < nth; ++i) {
            queue.restart(i);
        }
    }
};

} // namespace

TEST_CASE("a thread runs its own share first, then what is left of the others'") {
    step                 s(3);
    std::vector<int32_t> order;
    const auto           note = [&](int32_t chunk, int32_t chunks) {
        CHECK(chunks == 12);
        order.push_back(chunk);
        return GGML_EXT_CPU_OK;
    };
    CHECK(s.queue.drain(4, 1, 3, note) == GGML_EXT_CPU_OK);
    CHECK(order == std::vector<int32_t>{4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3});
    CHECK(s.queue.drain(4, 0, 3, note) == GGML_EXT_CPU_OK);
    CHECK(order.size() == 12);
}

TEST_CASE("every chunk is run once, however many threads come") {
    constexpr int32_t EACH = 8;
    for (const int32_t nth : {1, 2, 3, 8}) {
        CAPTURE(nth);
        step                          s(nth);
        std::vector<std::atomic<int>> runs(static_cast<size_t>(nth * EACH));
        std::vector<std::thread>      threads;
        for (int32_t ith = 0; ith < nth; ++ith) {
            threads.emplace_back([&, ith] {
                s.queue.drain(EACH, ith, nth, [&](int32_t chunk, int32_t) {
                    ++runs[static_cast<size_t>(chunk)];
                    std::this_thread::yield();
                    return GGML_EXT_CPU_OK;
                });
            });
        }
        for (std::thread & t : threads) {
            t.join();
        }
        for (const std::atomic<int> & n : runs) {
            CHECK(n == 1);
        }
    }
}

TEST_CASE("a kernel's failure is returned, and ends the thread's work") {
    step s(1);
    int  runs = 0;
    CHECK(s.queue.drain(4, 0, 1, [&](int32_t, int32_t) { return ++runs == 2 ? GGML_EXT_CPU_SMALL_BUFFER : GGML_EXT_CPU_OK; }) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(runs == 2);
}

TEST_CASE("one thread needs one chunk, and no chunk is smaller than asked") {
    CHECK(chunks_each(100000, 72, 1) == 1);
    CHECK(chunks_each(287, 72, 2) == 1);
    CHECK(chunks_each(288, 72, 2) == 2);
    CHECK(chunks_each(100000, 72, 2) == MOST_CHUNKS_EACH);
    CHECK(chunks_each(1, 72, 16) == 1);
}
