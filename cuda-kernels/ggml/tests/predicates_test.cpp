// What the kernels' predicates accept, asked with made-up nodes: no GPU is needed. Registrations are noted here instead of made.

#include "../blas.h"
#include "../library.h"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <deque>
#include <map>
#include <string>

struct ggml_ext_graph {
    std::vector<const ggml_ext_node *> nodes;
};

namespace {

std::map<std::string, ggml_ext_kernel_desc> & registered() {
    static std::map<std::string, ggml_ext_kernel_desc> all;
    return all;
}

} // namespace

int ggml_ext_register_op(const ggml_ext_op_desc *, ggml_ext_registration **) {
    return GGML_EXT_STATUS_DUPLICATE;
}

int ggml_ext_register_kernel_ex(ggml_backend_device *, const ggml_ext_kernel_desc * desc, uint32_t, ggml_ext_registration ** out) {
    registered().emplace(desc->name, *desc);
    *out = nullptr;
    return GGML_EXT_STATUS_SUCCESS;
}

int ggml_ext_unregister(ggml_ext_registration *) {
    return GGML_EXT_STATUS_SUCCESS;
}

const ggml_ext_node * ggml_ext_graph_node(const ggml_ext_graph * graph, int32_t index) {
    return index >= 0 && static_cast<size_t>(index) < graph->nodes.size() ? graph->nodes[static_cast<size_t>(index)] : nullptr;
}

namespace cuda_ops {

bool has_blas() {
    return true;
}

int multiply_i8(void *, int64_t, int64_t, int64_t, const int8_t *, int64_t, const int8_t *, int64_t, int32_t *) {
    return -1;
}

int stream_of(const ggml_ext_exec_params &, const device &, void *&) {
    return GGML_EXT_STATUS_FAILED;
}

int status_of(int) {
    return GGML_EXT_STATUS_FAILED;
}

} // namespace cuda_ops

using namespace cuda_ops;

namespace {

constexpr int NEOX = 2;

const ggml_ext_kernel_desc & kernel(const std::string & name) {
    static const bool once = [] {
        device d;
        d.capability = 90;
        static registrar r(d);
        for (auto * add : {register_linear_i8, register_quantize_i8_convrot, register_rope, register_rope_apply, register_rms_norm_rope, register_convrot_fused}) {
            add(r);
        }
        return true;
    }();
    (void) once;
    return registered().at(name);
}

// Nodes and tensors that have no memory.
class made_up {
public:
    ggml_ext_tensor * tensor(int32_t type, std::vector<int64_t> ne) {
        ggml_ext_tensor & t = tensors_.emplace_back();
        t.struct_size       = sizeof(t);
        t.tensor            = reinterpret_cast<const ggml_tensor *>(&t); // an identity, never read
        t.type              = type;
        t.name              = "";
        t.op                = "NONE";
        ne.resize(GGML_EXT_MAX_DIMS, 1);
        size_t stride = element_size(t);
        for (size_t d = 0; d < GGML_EXT_MAX_DIMS; ++d) {
            t.ne[d] = ne[d];
            t.nb[d] = stride;
            stride *= static_cast<size_t>(ne[d]);
        }
        t.nbytes = stride;
        return &t;
    }
    // rows of so many elements within larger ones
    ggml_ext_tensor * view(const ggml_ext_tensor * owner, int64_t ne0, size_t offset) {
        ggml_ext_tensor & t = tensors_.emplace_back(*owner);
        t.tensor            = reinterpret_cast<const ggml_tensor *>(&t);
        t.view_src          = owner->tensor;
        t.view_offs         = offset;
        t.ne[0]             = ne0;
        return &t;
    }
    ggml_ext_node * node(const char * op, ggml_ext_tensor * dst, std::vector<const ggml_ext_tensor *> src) {
        sources_.push_back(std::move(src));
        params_.emplace_back();
        ggml_ext_node & n = nodes_.emplace_back();
        n.struct_size     = sizeof(n);
        n.op              = op;
        n.dst             = dst;
        n.n_src           = static_cast<int32_t>(sources_.back().size());
        n.src             = sources_.back().data();
        n.op_params       = params_.back().words;
        dst->op           = op;
        return &n;
    }
    template <typename T> void param(const ggml_ext_node * n, size_t index, T value) {
        std::memcpy(const_cast<char *>(static_cast<const char *>(n->op_params)) + 4 * index, &value, sizeof(value));
    }

private:
    struct params {
        int32_t words[16] = {};
    };
    std::deque<ggml_ext_tensor>                      tensors_;
    std::deque<ggml_ext_node>                        nodes_;
    std::deque<std::vector<const ggml_ext_tensor *>> sources_;
    std::deque<params>                               params_;
};

bool supported(const char * name, const ggml_ext_node * node, const char * reason) {
    const ggml_ext_kernel_desc & k = kernel(name);
    ggml_ext_set_error("");
    const bool yes = k.supports(node, k.user_data) != 0;
    CHECK_MESSAGE(std::string(ggml_ext_last_error()).find(yes ? "" : reason) != std::string::npos, ggml_ext_last_error());
    return yes;
}

int matched(const char * name, std::vector<const ggml_ext_node *> nodes, const char * reason) {
    const ggml_ext_kernel_desc & k = kernel(name);
    const ggml_ext_graph         graph{std::move(nodes)};
    ggml_ext_set_error("");
    const int n = k.match(&graph, 0, k.user_data);
    CHECK_MESSAGE(std::string(ggml_ext_last_error()).find(n != 0 ? "" : reason) != std::string::npos, ggml_ext_last_error());
    return n;
}

} // namespace

TEST_CASE("I8-3: W and X begin at multiples of four bytes, as cuBLAS wants them; an F32 X may begin anywhere") {
    made_up    m;
    const auto node = [&](const ggml_ext_tensor * w, const ggml_ext_tensor * x) {
        static const ggml_ext_linear_i8_attrs attrs{};
        ggml_ext_node *                       n = m.node(GGML_EXT_OP_LINEAR_I8, m.tensor(TYPE_F32, {8, 3}), {w, x});
        n->attrs                                = &attrs;
        n->attrs_size                           = sizeof(attrs);
        return n;
    };
    const char * const reason = "multiple of 4 bytes";
    auto *             w = m.tensor(TYPE_I8, {64, 8}), *x = m.tensor(TYPE_I8, {64, 3});
    auto *             wide = m.tensor(TYPE_I8, {80, 8}), *floats = m.tensor(TYPE_F32, {80, 3});
    CHECK(supported("cuda.linear_i8", node(w, x), ""));
    for (const size_t offset : {0, 1, 2, 3, 4, 6, 8}) {
        CAPTURE(offset);
        CHECK(supported("cuda.linear_i8", node(m.view(wide, 64, offset), x), reason) == (offset % 4 == 0));
        ggml_ext_tensor * rows = m.view(wide, 64, offset);
        rows->ne[1]            = 3;
        CHECK(supported("cuda.linear_i8", node(w, rows), reason) == (offset % 4 == 0));
        ggml_ext_tensor * placed = m.tensor(TYPE_I8, {64, 8});
        placed->data             = reinterpret_cast<void *>(uintptr_t{4096} + offset);
        CHECK(supported("cuda.linear_i8", node(placed, x), reason) == (offset % 4 == 0));
    }
    CHECK(supported("cuda.linear_i8", node(w, m.view(floats, 64, 4)), reason));
    wide->nb[1] = 82;
    CHECK_FALSE(supported("cuda.linear_i8", node(m.view(wide, 64, 0), x), "82"));
}

TEST_CASE("I8-2: more rows, or longer ones, than a grid holds are the CPU's") {
    made_up    m;
    const auto node = [&](std::vector<int64_t> ne) {
        static const ggml_ext_quantize_i8_convrot_attrs attrs{1};
        ggml_ext_node *                                 n = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, m.tensor(TYPE_I8, {4}), {m.tensor(TYPE_F32, std::move(ne))});
        n->attrs                                          = &attrs;
        n->attrs_size                                     = sizeof(attrs);
        return n;
    };
    const char * const name = "cuda.quantize_i8_convrot";
    CHECK(supported(name, node({256, 70000, 2}), ""));
    CHECK(supported(name, node({4, 0x7ffffffc}), "")); // padded to four: the most that a grid holds
    CHECK_FALSE(supported(name, node({4, 0x7ffffffd}), "more than a grid holds"));
    CHECK_FALSE(supported(name, node({4, 65536, 32768}), "more than a grid holds"));
    CHECK(supported(name, node({0x40000000, 1}), ""));
    CHECK_FALSE(supported(name, node({0x40000004, 1}), "more than a grid holds"));
}

TEST_CASE("ROPE-2: more features or positions than the kernel takes are ggml's own") {
    made_up    m;
    const auto node = [&](std::vector<int64_t> ne, int32_t n_dims) {
        const int64_t   L = ne[2];
        ggml_ext_node * n = m.node("ROPE", m.tensor(TYPE_F32, ne), {m.tensor(TYPE_F32, ne), m.tensor(TYPE_I32, {L})});
        m.param(n, 1, n_dims);
        m.param(n, 2, NEOX);
        m.param(n, 5, 10000.0f);
        m.param(n, 6, 1.0f);
        return n;
    };
    CHECK(supported("cuda.rope", node({128, 8, 70000, 2}, 128), ""));
    CHECK(supported("cuda.rope", node({8192, 1, 2, 1}, 4096), ""));
    CHECK_FALSE(supported("cuda.rope", node({8192, 1, 2, 1}, 4098), "expected at most 4096"));
    CHECK(supported("cuda.rope", node({2, 1, 0x7fffffff, 1}, 2), ""));
    CHECK_FALSE(supported("cuda.rope", node({2, 1, 0x40000000, 2}, 2), "more than a grid holds"));
}

TEST_CASE("ROT-1: rows and weights that do not begin at multiples of 16 bytes are not fused") {
    made_up                                         m;
    static const ggml_ext_quantize_i8_convrot_attrs attrs{256};
    const auto                                      convrot = [&](const ggml_ext_tensor * of) {
        ggml_ext_node * n = m.node(GGML_EXT_OP_QUANTIZE_I8_CONVROT, m.tensor(TYPE_I8, {4}), {of});
        n->attrs          = &attrs;
        n->attrs_size     = sizeof(attrs);
        return n;
    };
    const char * const reason = "aligned to 16 bytes";
    auto *             owner  = m.tensor(TYPE_F32, {1040, 6}); // rows are a multiple of 16 bytes apart
    for (const size_t offset : {0, 4, 8, 16, 32}) {
        CAPTURE(offset);
        const bool      good = offset % 16 == 0;
        const auto *    x    = m.view(owner, 512, offset);
        ggml_ext_node * n    = m.node("SCALE", m.tensor(TYPE_F32, {512, 6}), {x});
        m.param(n, 0, 0.5f);
        CHECK(matched("cuda.scale_convrot", {n, convrot(n->dst)}, reason) == (good ? 2 : 0));

        n           = m.node("GLU", m.tensor(TYPE_F32, {512, 6}), {m.view(owner, 1024, offset)});
        n->function = "SWIGLU";
        CHECK(matched("cuda.swiglu_convrot", {n, convrot(n->dst)}, reason) == (good ? 2 : 0));
        n           = m.node("GLU", m.tensor(TYPE_F32, {512, 6}), {m.tensor(TYPE_F32, {512, 6}), x});
        n->function = "SWIGLU";
        CHECK(matched("cuda.swiglu_convrot", {n, convrot(n->dst)}, reason) == (good ? 2 : 0));

        n              = m.node("RMS_NORM", m.tensor(TYPE_F32, {512, 6}), {x});
        auto * product = m.node("MUL", m.tensor(TYPE_F32, {512, 6}), {n->dst, m.tensor(TYPE_F32, {512})});
        CHECK(matched("cuda.rms_norm_convrot", {n, product, convrot(product->dst)}, reason) == (good ? 3 : 0));
        ggml_ext_tensor * weight = m.tensor(TYPE_F32, {512});
        weight->data             = reinterpret_cast<void *>(uintptr_t{4096} + offset);
        n                        = m.node("RMS_NORM", m.tensor(TYPE_F32, {512, 6}), {m.tensor(TYPE_F32, {512, 6})});
        product                  = m.node("MUL", m.tensor(TYPE_F32, {512, 6}), {n->dst, weight});
        CHECK(matched("cuda.rms_norm_convrot", {n, product, convrot(product->dst)}, reason) == (good ? 3 : 0));
    }
}

TEST_CASE("ROPE-3: a product that is rotated and gives the frequency factors, too, is not fused: it is never written") {
    made_up         m;
    const auto *    x       = m.tensor(TYPE_F32, {64, 1, 1});
    ggml_ext_node * norm    = m.node("RMS_NORM", m.tensor(TYPE_F32, {64, 1, 1}), {x});
    ggml_ext_node * product = m.node("MUL", m.tensor(TYPE_F32, {64, 1, 1}), {norm->dst, m.tensor(TYPE_F32, {64})});
    const auto      rope    = [&](const ggml_ext_tensor * factors) {
        ggml_ext_node * n = m.node("ROPE", m.tensor(TYPE_F32, {64, 1, 1}), {product->dst, m.tensor(TYPE_I32, {1}), factors});
        m.param(n, 1, 64);
        m.param(n, 2, NEOX);
        m.param(n, 5, 10000.0f);
        m.param(n, 6, 1.0f);
        return n;
    };
    CHECK(matched("cuda.rms_norm_rope", {norm, product, rope(m.tensor(TYPE_F32, {32}))}, "") == 3);
    CHECK(matched("cuda.rms_norm_rope", {norm, product, rope(product->dst)}, "read for the angles") == 0);
    CHECK(matched("cuda.rms_norm_rope", {norm, product, rope(norm->dst)}, "read for the angles") == 0);
}
