#include "plan/fingerprint.h"

#include <cstring>

namespace ggml_ext::plan {

namespace {

// 64-bit constants by splitmix64, odd
constexpr uint64_t constant(uint64_t i) {
    uint64_t z = (i + 1) * 0x9e3779b97f4a7c15ull;
    z          = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z          = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (z ^ (z >> 31)) | 1;
}

// A node is pairs of words: PAIRS of the tensor itself, then those of each source slot.
constexpr int TENSOR_PAIRS = 5;
constexpr int PAIRS        = TENSOR_PAIRS + 6;
constexpr int ALL_PAIRS    = PAIRS + TENSOR_PAIRS * GGML_EXT_MAX_SRC;

struct key {
    uint64_t x, y;
};

struct keys {
    key of[ALL_PAIRS];
    constexpr keys() : of() {
        for (int i = 0; i < ALL_PAIRS; ++i) {
            of[i] = {constant(2 * i), constant(2 * i + 1)};
        }
    }
};
constexpr keys KEYS;

__extension__ using uint128 = unsigned __int128;

// Sums of these products, each word plus a constant of its place, make the print: one multiplication for 16 bytes, and none waits
// for another. Not cryptographic, graphs are not hostile.
inline uint128 product(uint64_t x, uint64_t y, const key & k) {
    return static_cast<uint128>(x + k.x) * (y + k.y);
}

inline uint128 product(const void * pair, const key & k) {
    uint64_t words[2];
    std::memcpy(words, pair, sizeof(words));
    return product(words[0], words[1], k);
}

inline uint64_t word(const void * pointer) {
    return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer));
}

inline uint64_t word(int32_t high, int32_t low) {
    return static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 | static_cast<uint32_t>(low);
}

inline uint128 sum_tensor(const ggml_tensor * t, const key * k) {
    return product(word(t), word(t->type, t->flags), k[0]) + product(t->ne, k[1]) + product(t->ne + 2, k[2]) + product(t->nb, k[3]) +
           product(t->nb + 2, k[4]);
}

// `nodes` are those of the print so far: a source among the latest says no more than which it is, since all of it is in the
// print already. Most sources are.
uint128 sum_node(ggml_tensor * const * nodes, int n) {
    const ggml_tensor * t      = nodes[n];
    const ggml_tensor * latest = n > 0 ? nodes[n - 1] : nullptr;
    const ggml_tensor * before = n > 1 ? nodes[n - 2] : nullptr;
    const key *         k      = KEYS.of;
    uint128             sum    = sum_tensor(t, k);
    k += TENSOR_PAIRS;
    for (int i = 0; i < 4; ++i) {
        sum += product(t->op_params + 4 * i, k[i]);
    }
    sum += product(word(t->op, 0), word(t->view_src), k[4]) + product(t->view_offs, 0, k[5]);
    k += PAIRS - TENSOR_PAIRS;
    for (int i = 0; i < GGML_EXT_MAX_SRC; ++i) {
        const ggml_tensor * src = t->src[i];
        if (src == nullptr) {
            continue;
        }
        const key * place = k + TENSOR_PAIRS * i;
        sum += src == latest || src == before ? product(word(src), 0, *place) : sum_tensor(src, place);
    }
    return sum;
}

} // namespace

print128 print_nodes(ggml_tensor * const * nodes, int n_nodes) {
    print128 print{static_cast<uint64_t>(n_nodes), ~static_cast<uint64_t>(n_nodes)};
    for (int i = 0; i < n_nodes; ++i) {
        const uint128 sum = sum_node(nodes, i);
        print.a           = (print.a ^ static_cast<uint64_t>(sum)) * 0xd6e8feb86659fd93ull;
        print.a ^= print.a >> 32;
        print.b = (print.b ^ static_cast<uint64_t>(sum >> 64)) * 0xff51afd7ed558ccdull;
        print.b ^= print.b >> 33;
    }
    return print;
}

print128 print_step(ggml_tensor * const * nodes, int first, int count) {
    return print_nodes(nodes + first, count);
}

} // namespace ggml_ext::plan
