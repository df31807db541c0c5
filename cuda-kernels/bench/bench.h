#pragma once

// Timing by CUDA events over replays of one graph that runs a work item on many buffer sets in turn, so that the
// L2 cache serves none of them; and the copy of the same bytes, timed in the same way, to compare with.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

// Ends the program with a message where a call failed.
void check(cudaError_t error, const char * what);
void check(int status);

// Device memory filled with uniform floats of [-1, 1), for as long as the program runs.
class memory {
public:
    explicit memory(size_t bytes);
    ~memory();
    memory(const memory &)             = delete;
    memory & operator=(const memory &) = delete;

    char * data() const { return data_; }

    std::vector<float> floats(size_t offset, size_t n) const;

private:
    char * data_ = nullptr;
};

// `bytes` rounded up and spread by an odd number of pages, so that a tensor and the next one do not march through
// the same memory channels together.
size_t apart(size_t bytes);

// How many sets of `bytes` each are needed to leave the cache far behind.
int sets_of(size_t bytes);

// Median microseconds of one work item; work(set, stream) launches the item on one set of buffers.
double replay_us(int sets, const std::function<void(int, cudaStream_t)> & work);

// Median microseconds of a device-to-device copy that reads and writes `bytes` together.
double copy_us(size_t bytes);

struct row {
    const char * shape;
    double       error; // against double precision
    size_t       bytes; // read and written, at least
    double       us;
};

void table_head(const char * title, const char * error);
void table_row(const row & r);

} // namespace bench

void rope_bench();
void quantize_i8_bench();
void rescale_i8_bench();
void convrot_fused_bench();
