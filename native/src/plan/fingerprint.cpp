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

constexpr int MAX_WORDS = 160;

struct constants {
    uint64_t a[MAX_WORDS], b[MAX_WORDS];
    constexpr constants() : a(), b() {
        for (int i = 0; i < MAX_WORDS; ++i) {
            a[i] = constant(2 * i);
            b[i] = constant(2 * i + 1);
        }
    }
};
constexpr constants K;

// Sums of words times constants: the multiplications do not wait for each other. Not cryptographic, graphs are not hostile.
class node_sum {
public:
    void add(uint64_t value) {
        a_ += value * K.a[n_];
        b_ += (value << 32 | value >> 32) * K.b[n_];
        ++n_;
    }
    void add(const void * pointer) { add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer))); }
    void add_words(const void * data, int n_words) {
        for (int i = 0; i < n_words; ++i) {
            uint64_t word;
            std::memcpy(&word, static_cast<const char *>(data) + 8 * i, 8);
            add(word);
        }
    }
    void fold_into(print128 & print) const {
        print.a = (print.a ^ a_) * 0xd6e8feb86659fd93ull + static_cast<uint64_t>(n_);
        print.a ^= print.a >> 32;
        print.b = (print.b ^ b_) * 0xff51afd7ed558ccdull + static_cast<uint64_t>(n_);
        print.b ^= print.b >> 33;
    }

private:
    uint64_t a_ = 0, b_ = 0;
    int      n_ = 0;
};

void add_shape(node_sum & h, const ggml_tensor * t) {
    h.add(static_cast<uint64_t>(static_cast<uint32_t>(t->type)) << 32 | static_cast<uint32_t>(t->flags));
    h.add_words(t->ne, 4);
    h.add_words(t->nb, 4);
}

void add_node(print128 & print, const ggml_tensor * t) {
    node_sum h;
    h.add(t);
    add_shape(h, t);
    h.add(static_cast<uint64_t>(t->op));
    h.add_words(t->op_params, 8);
    h.add(t->view_src);
    h.add(t->view_offs);
    for (int i = 0; i < GGML_EXT_MAX_SRC; ++i) {
        const ggml_tensor * src = t->src[i];
        if (src != nullptr) {
            h.add(static_cast<uint64_t>(i));
            h.add(src);
            add_shape(h, src);
        }
    }
    h.fold_into(print);
}

} // namespace

print128 print_nodes(ggml_tensor * const * nodes, int n_nodes) {
    print128 print{static_cast<uint64_t>(n_nodes), ~static_cast<uint64_t>(n_nodes)};
    for (int i = 0; i < n_nodes; ++i) {
        add_node(print, nodes[i]);
    }
    return print;
}

print128 print_step(ggml_tensor * const * nodes, int first, int count) {
    return print_nodes(nodes + first, count);
}

} // namespace ggml_ext::plan
