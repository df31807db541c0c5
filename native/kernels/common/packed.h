#pragma once

// The head of every packed weight buffer: what it holds and for which kernels, so that a wrong buffer
// is a status and not a wrong result.

#include "dispatch.h"

#include <string.h>

namespace {

struct packed_head {
    char    kind[8];
    int64_t n, k;
    int32_t isa;
    int32_t reserved[9]; // keeps the head one cache line
};
static_assert(sizeof(packed_head) == 64, "panels start on a cache line of an aligned buffer");

inline void write_head(void * packed, const char (&kind)[8], int64_t n, int64_t k) {
    packed_head head = {};
    memcpy(head.kind, kind, sizeof(kind));
    head.n   = n;
    head.k   = k;
    head.isa = static_cast<int32_t>(ggml_ext_cpu::active_isa());
    memcpy(packed, &head, sizeof(head));
}

inline bool head_matches(const void * packed, const char (&kind)[8], int64_t n, int64_t k) {
    packed_head head;
    memcpy(&head, packed, sizeof(head));
    return memcmp(head.kind, kind, sizeof(kind)) == 0 && head.n == n && head.k == k &&
           head.isa == static_cast<int32_t>(ggml_ext_cpu::active_isa());
}

} // namespace
