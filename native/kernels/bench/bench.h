#pragma once

// Timing of two sides in one run, interleaved; every figure is the processor time of the fastest of
// many short rounds on one thread, so that a neighbour on the same machine slows neither side.

#include <cstdint>
#include <functional>
#include <new>
#include <vector>

namespace bench {

// Vectors that begin on a cache line, as ggml's buffers and the library's packed weights do.
template <typename T> struct line_allocator {
    using value_type = T;
    line_allocator() = default;
    template <typename U> line_allocator(const line_allocator<U> &) {}
    T *  allocate(size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T * p, size_t) { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(const line_allocator &) const { return true; }
    bool operator!=(const line_allocator &) const { return false; }
};
template <typename T> using lines = std::vector<T, line_allocator<T>>;

// Processor time of the calling thread.
double thread_seconds();

struct side {
    const char *          name;
    std::function<void()> work;
};

// Seconds a call of each side, measured in turns (a b c, a b c, ...).
std::vector<double> interleaved(const std::vector<side> & sides);

// Register-only loops of the active instruction set's best multiply-adds, to be timed beside a kernel;
// macs is what one call does. The scalar kernels are shown against AVX2.
struct peak {
    std::function<void()> work;
    double                macs;
};
peak peak_f32();
peak peak_i8();

// oneDNN with weights in its own layout, one thread; empty functions where it was not found.
std::function<void()> onednn_f32(int64_t M, int64_t N, int64_t K, const float * x, const float * w, float * dst);
std::function<void()> onednn_i8(int64_t M, int64_t N, int64_t K, const uint8_t * x, const int8_t * w, int32_t * dst);
std::function<void()> onednn_i8(int64_t M, int64_t N, int64_t K, const int8_t * x, const int8_t * w, int32_t * dst);
// floats, scaled by column; scales by row oneDNN 2.6 has in its reference implementation alone
std::function<void()>
onednn_i8_scaled(int64_t M, int64_t N, int64_t K, const uint8_t * x, const int8_t * w, const float * w_scale, float * dst);

} // namespace bench

void attention_bench();
void gemm_f32_bench();
void quantize_i8_bench();
void gemm_i8_bench();
void rows_bench();
void make_row_bench();
void rope_bench();
