#include "plan/fingerprint.h"

#include <cstring>

namespace ggml_ext::plan {

namespace {

// Two 64-bit lanes of multiply and fold; not cryptographic, graphs are not hostile.
class hasher {
public:
    void add(uint64_t value) {
        const unsigned __int128 product = static_cast<unsigned __int128>(a_ ^ value) * 0x9e3779b97f4a7c15ull;
        a_ = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
        b_ = (b_ + value) * 0xd6e8feb86659fd93ull;
        b_ ^= b_ >> 32;
    }
    void add(const void * pointer) { add(static_cast<uint64_t>(reinterpret_cast<uintptr_t>(pointer))); }
    void add_words(const void * data, size_t bytes) {
        for (size_t i = 0; i + 8 <= bytes; i += 8) {
            uint64_t word;
            std::memcpy(&word, static_cast<const char *>(data) + i, 8);
            add(word);
        }
    }
    print128 result() const { return {a_, b_}; }

private:
    uint64_t a_ = 0x243f6a8885a308d3ull, b_ = 0x13198a2e03707344ull;
};

void add_shape(hasher & h, const ggml_tensor * t) {
    h.add(static_cast<uint64_t>(static_cast<uint32_t>(t->type)) << 32 | static_cast<uint32_t>(t->flags));
    h.add_words(t->ne, sizeof(t->ne));
    h.add_words(t->nb, sizeof(t->nb));
}

void add_node(hasher & h, const ggml_tensor * t) {
    h.add(t);
    add_shape(h, t);
    h.add(static_cast<uint64_t>(t->op));
    h.add_words(t->op_params, sizeof(t->op_params));
    for (const ggml_tensor * src : t->src) {
        h.add(src);
        if (src != nullptr) {
            add_shape(h, src);
        }
    }
    h.add(t->view_src);
    h.add(t->view_offs);
}

} // namespace

print128 print_nodes(ggml_tensor * const * nodes, int n_nodes) {
    hasher h;
    for (int i = 0; i < n_nodes; ++i) {
        add_node(h, nodes[i]);
    }
    return h.result();
}

uint64_t print_step(ggml_tensor * const * nodes, int first, int count) {
    hasher h;
    for (int i = first; i < first + count; ++i) {
        add_node(h, nodes[i]);
    }
    return h.result().a;
}

} // namespace ggml_ext::plan
