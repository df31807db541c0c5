#pragma once

// Memory that will be needed soon comes into the core's own cache (L2) while other work runs.

#include <stddef.h>
#include <stdint.h>

namespace {

constexpr int64_t CACHE_LINE = 64; // bytes

struct prefetch {
    const char * line;
    const char * end;
    int64_t      lines; // at a time

    void some() {
        if (line < end) {
            for (const char * stop = line + lines * CACHE_LINE; line != stop; line += CACHE_LINE) {
                __builtin_prefetch(line, 0, 2);
            }
        }
    }
};

// What step `step` of `steps` fetches of `bytes` bytes, in `times` calls of some().
inline prefetch prefetch_share(const char * from, int64_t bytes, int64_t step, int64_t steps, int64_t times) {
    const int64_t portion = steps * times * CACHE_LINE;
    return {from + bytes * step / steps, from + bytes * (step + 1) / steps, (bytes + portion - 1) / portion};
}

inline void fetch_to_read(const char * from, int64_t bytes) {
    for (int64_t b = 0; b < bytes; b += CACHE_LINE) {
        __builtin_prefetch(from + b);
    }
}

// Lines of `rows` rows of a result, before it is there.
inline void fetch_to_write(const void * dst, size_t stride, int rows, int64_t row_bytes) {
    for (int r = 0; r < rows; r++) {
        const char * line = static_cast<const char *>(dst) + static_cast<size_t>(r) * stride;
        for (int64_t b = 0; b < row_bytes; b += CACHE_LINE) {
            __builtin_prefetch(line + b, 1);
        }
    }
}

} // namespace
