// FUSE-3: which nodes may be moved behind which. Each rule with a move that is accepted and one that is refused.

#include "plan/delay.h"
#include "support/graph_fixture.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// Moves, and checks that nothing but the order changed, and the order only where the move was accepted.
std::string delay(const graph_fixture & g, int first, int count, int before) {
    const int                        n = g.graph()->n_nodes;
    std::vector<const ggml_tensor *> expected(g.graph()->nodes, g.graph()->nodes + n);
    std::vector<ggml_tensor>         metadata;
    for (const ggml_tensor * t : expected) {
        metadata.push_back(*t);
    }
    plan::graph_index index  = g.index();
    const std::string reason = plan::delay(index, first, count, before);
    for (int i = 0; i < n; ++i) {
        CHECK(std::memcmp(&metadata[i], expected[i], sizeof(ggml_tensor)) == 0);
    }
    if (reason.empty()) {
        std::rotate(expected.begin() + first, expected.begin() + first + count, expected.begin() + before);
    }
    for (int i = 0; i < n; ++i) {
        CHECK(index.node(i) == expected[i]);
        CHECK(index.find(expected[i]) == i);
    }
    return reason;
}

// a -> SQR, b -> SILU: two nodes that have nothing in common, and a leaf of rows to write to
struct pair : graph_fixture {
    ggml_tensor * a     = leaf(8, 4);
    ggml_tensor * b     = leaf(8, 4);
    ggml_tensor * cache = leaf(8, 32);
    ggml_tensor * sqr   = named(stock().ggml_sqr(ctx(), a), "sqr");
    ggml_tensor * silu  = named(stock().ggml_silu(ctx(), b), "silu");

    ggml_tensor * rows(int first) const { return stock().ggml_view_2d(ctx(), cache, 8, 4, cache->nb[1], first * cache->nb[1]); }
};

void foreign_callback(ggml_tensor *, const ggml_tensor *, int, int, void *) {}

} // namespace

TEST_CASE("FUSE-3: a producer moves behind independent nodes") {
    pair g;
    g.expand({g.sqr, g.silu, stock().base.ggml_add(g.ctx(), g.sqr, g.silu)});
    CHECK(delay(g, 0, 1, 2) == "");
}

TEST_CASE("FUSE-3: a range moves, to the end too, and keeps its inner order") {
    pair g;
    g.expand({stock().base.ggml_add(g.ctx(), g.sqr, g.a), stock().ggml_mul(g.ctx(), g.silu, g.b)});
    CHECK(delay(g, 0, 2, 4) == "");
}

TEST_CASE("FUSE-3: a move over no nodes changes nothing") {
    pair g;
    g.expand({g.sqr, g.silu});
    CHECK(delay(g, 0, 1, 1) == "");
}

TEST_CASE("FUSE-3: a range that is not in the graph is refused") {
    pair g;
    g.expand({g.sqr, g.silu});
    for (const auto & [first, count, before] : {std::array{-1, 1, 2}, {0, 0, 2}, {0, 1, 3}, {1, 2, 3}, {0, 2, 1}, {0, INT32_MAX, 2}}) {
        CHECK(delay(g, first, count, before).find("expected 0 <= first, 1 <= count, first + count <= before <= number of nodes") !=
              std::string::npos);
    }
}

TEST_CASE("FUSE-3: a node does not move behind one that depends on it") {
    pair g;
    SUBCASE("as a reader") {
        g.expand({stock().base.ggml_add(g.ctx(), g.sqr, g.b)});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 reads node 0 ('sqr')");
    }
    SUBCASE("as a view") {
        g.expand({g.sqr, stock().ggml_reshape_2d(g.ctx(), g.sqr, 4, 8)});
        CHECK(delay(g, 0, 1, 2).find(" reads node 0 ('sqr')") != std::string::npos);
    }
    SUBCASE("through the rest of the moved range") {
        g.expand({g.silu, stock().base.ggml_add(g.ctx(), g.sqr, g.b), stock().ggml_mul(g.ctx(), g.sqr, g.a)});
        CHECK(delay(g, 0, 2, 4) == "FUSE-3: node 2 reads node 1 ('sqr')");
        CHECK(delay(g, 0, 1, 4) == "");
    }
    SUBCASE("through a view that is no node") {
        g.expand({g.sqr, stock().ggml_silu(g.ctx(), ops().ggml_view_tensor(g.ctx(), g.sqr))});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 reads storage that node 0 ('sqr') writes");
    }
}

TEST_CASE("FUSE-3: views move and are crossed, storage is what counts") {
    pair          g;
    ggml_tensor * view  = stock().ggml_view_2d(g.ctx(), g.a, 8, 2, g.a->nb[1], 0);
    ggml_tensor * again = stock().ggml_view_2d(g.ctx(), view, 4, 2, g.a->nb[1], 16);
    ggml_tensor * norm  = stock().ggml_rms_norm(g.ctx(), again, 1e-6f);
    SUBCASE("a view of a view with its reader behind an independent node") {
        g.expand({norm, g.silu});
        CHECK(delay(g, 0, 3, 4) == "");
    }
    SUBCASE("a view behind a writer of its storage: it reads nothing itself") {
        g.expand({view, stock().ggml_cpy(g.ctx(), g.b, g.a)});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("but its reader does") {
        g.named(norm, "norm");
        g.expand({norm, stock().ggml_cpy(g.ctx(), g.b, g.a)});
        CHECK(delay(g, 2, 1, 4).find(" writes storage that node 2 ('norm') reads") != std::string::npos);
    }
}

TEST_CASE("FUSE-3: a copy is crossed where it writes elsewhere") {
    pair g;
    SUBCASE("independent") {
        g.expand({g.sqr, stock().ggml_cpy(g.ctx(), g.b, g.leaf(8, 4, TYPE_F16))});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("over what a moved node reads") {
        g.expand({g.sqr, stock().ggml_cpy(g.ctx(), g.b, g.a)});
        CHECK(delay(g, 0, 1, 2).find(" writes storage that node 0 ('sqr') reads") != std::string::npos);
    }
    SUBCASE("over what a moved node writes") {
        ggml_tensor * hidden = ops().ggml_view_tensor(g.ctx(), g.sqr);
        ggml_tensor * copy   = g.named(stock().ggml_cpy(g.ctx(), g.b, hidden), "copy");
        g.expand({g.sqr, copy});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('copy') works in place on node 0 ('sqr'): move them together");
    }
}

TEST_CASE("FUSE-3: a copy moves where its destination is not touched on the way") {
    pair          g;
    ggml_tensor * to   = g.rows(0);
    ggml_tensor * copy = g.named(stock().ggml_cpy(g.ctx(), g.sqr, to), "copy");
    SUBCASE("independent") {
        g.expand({to, copy, g.silu});
        CHECK(delay(g, 1, 2, 4) == "");
    }
    SUBCASE("over a reader of other rows") {
        ggml_tensor * other = g.rows(4);
        g.expand({to, other, copy, stock().ggml_silu(g.ctx(), other)});
        CHECK(delay(g, 3, 1, 5) == "");
    }
    SUBCASE("over a reader of a row of it: refused") {
        ggml_tensor * other = g.rows(3);
        g.expand({to, other, copy, stock().ggml_silu(g.ctx(), other)});
        CHECK(delay(g, 3, 1, 5) == "FUSE-3: node 4 reads storage that node 3 ('copy') writes");
    }
    SUBCASE("over a copy to other rows") {
        ggml_tensor * other = g.rows(4);
        g.expand({to, other, copy, stock().ggml_cpy(g.ctx(), g.b, other)});
        CHECK(delay(g, 3, 1, 5) == "");
    }
    SUBCASE("over a copy to a row of it: refused") {
        ggml_tensor * other = g.rows(3);
        g.expand({to, other, copy, stock().ggml_cpy(g.ctx(), g.b, other)});
        CHECK(delay(g, 3, 1, 5).find("storage that node 3 ('copy') writes") != std::string::npos);
    }
}

TEST_CASE("FUSE-3: SET_ROWS may write any row of its destination") {
    pair          g;
    ggml_tensor * index = stock().ggml_new_tensor_1d(g.ctx(), TYPE_I64, 4);
    ggml_tensor * set   = g.named(ops().ggml_set_rows(g.ctx(), g.cache, g.sqr, index), "set");
    SUBCASE("independent") {
        g.expand({set, g.silu});
        CHECK(delay(g, 0, 2, 3) == "");
        CHECK(delay(g, 0, 1, 3).empty());
    }
    SUBCASE("over a reader of any row: refused") {
        ggml_tensor * last = g.rows(28);
        g.expand({last, set, stock().ggml_silu(g.ctx(), last)});
        CHECK(delay(g, 2, 1, 4) == "FUSE-3: node 3 reads storage that node 2 ('set') writes");
    }
    SUBCASE("crossed by a reader of another tensor") {
        g.expand({g.silu, set});
        CHECK(delay(g, 0, 1, 3) == "");
    }
    SUBCASE("crossed by a reader of any row: refused") {
        ggml_tensor * last = g.rows(28);
        ggml_tensor * read = g.named(stock().ggml_silu(g.ctx(), last), "read");
        g.expand({g.sqr, last, read, set});
        CHECK(delay(g, 2, 1, 4) == "FUSE-3: node 3 ('set') writes storage that node 2 ('read') reads");
    }
}

TEST_CASE("FUSE-3: SET and ACC write in place, or to storage of their own") {
    pair         g;
    const size_t nb1 = g.a->nb[1];
    SUBCASE("SET in place over what a moved node reads: refused") {
        g.expand({g.sqr, g.named(ops().ggml_set_2d_inplace(g.ctx(), g.a, g.b, nb1, 0), "set")});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('set') writes storage that node 0 ('sqr') reads");
    }
    SUBCASE("ACC in place over what a moved node reads: refused") {
        g.expand({g.sqr, g.named(ops().ggml_acc_inplace(g.ctx(), g.a, g.b, nb1, nb1, nb1, 0), "acc")});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('acc') writes storage that node 0 ('sqr') reads");
    }
    SUBCASE("into storage of their own: accepted") {
        g.expand({g.sqr, ops().ggml_set_2d(g.ctx(), g.a, g.b, nb1, 0), ops().ggml_acc(g.ctx(), g.a, g.b, nb1, nb1, nb1, 0)});
        CHECK(delay(g, 0, 1, 3) == "");
    }
}

TEST_CASE("FUSE-3: an in-place operation is crossed where its storage is apart") {
    pair g;
    SUBCASE("apart") {
        g.expand({g.sqr, ops().ggml_scale_inplace(g.ctx(), g.b, 2.0f)});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("on an input of a moved node: refused") {
        g.expand({g.sqr, g.named(ops().ggml_scale_inplace(g.ctx(), g.a, 2.0f), "scale")});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('scale') writes storage that node 0 ('sqr') reads");
    }
    SUBCASE("on other rows of an input: accepted") {
        ggml_tensor * top    = stock().ggml_view_2d(g.ctx(), g.a, 8, 2, g.a->nb[1], 0);
        ggml_tensor * bottom = stock().ggml_view_2d(g.ctx(), g.a, 8, 2, g.a->nb[1], 2 * g.a->nb[1]);
        g.expand({top, bottom, stock().ggml_sqr(g.ctx(), top), ops().ggml_scale_inplace(g.ctx(), bottom, 2.0f)});
        CHECK(delay(g, 2, 1, 4) == "");
    }
}

TEST_CASE("FUSE-3: an owner keeps its in-place consumers with it") {
    pair          g;
    ggml_tensor * in_place = g.named(ops().ggml_mul_inplace(g.ctx(), g.sqr, g.b), "weighted");
    SUBCASE("they move together") {
        g.expand({in_place, g.silu});
        CHECK(delay(g, 0, 2, 3) == "");
    }
    SUBCASE("the owner does not move behind one") {
        g.expand({in_place, g.silu});
        CHECK(delay(g, 0, 1, 3) == "FUSE-3: node 1 ('weighted') works in place on node 0 ('sqr'): move them together");
    }
    SUBCASE("a view between them changes nothing") {
        ggml_tensor * flat = g.named(ops().ggml_reshape_1d(g.ctx(), g.sqr, 32), "flat");
        g.expand({g.named(ops().ggml_scale_inplace(g.ctx(), flat, 2.0f), "scale"), g.silu});
        CHECK(delay(g, 0, 1, 4) == "FUSE-3: node 1 ('flat') reads node 0 ('sqr')");
        CHECK(delay(g, 0, 2, 4) == "FUSE-3: node 2 ('scale') works in place on node 1 ('flat'): move them together");
        CHECK(delay(g, 0, 3, 4) == "");
    }
    SUBCASE("the owner may come nearer to it") {
        g.expand({g.sqr, g.silu, in_place});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("it does not move behind a reader of the owner") {
        g.expand({g.sqr, in_place, stock().base.ggml_add(g.ctx(), g.sqr, g.b)});
        CHECK(delay(g, 1, 1, 3) == "FUSE-3: node 2 reads storage that node 1 ('weighted') writes");
    }
}

TEST_CASE("FUSE-3: an owning dtype conversion moves and is crossed") {
    pair          g;
    ggml_tensor * half = ops().ggml_cast(g.ctx(), g.b, TYPE_F16);
    SUBCASE("crossed") {
        g.expand({g.sqr, half, stock().ggml_cont(g.ctx(), g.b), ops().ggml_dup(g.ctx(), g.b)});
        CHECK(delay(g, 0, 1, 4) == "");
    }
    SUBCASE("moved") {
        g.expand({half, g.sqr});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("not behind its reader") {
        g.named(half, "half");
        g.expand({g.named(stock().ggml_cont(g.ctx(), half), "cont")});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('cont') reads node 0 ('half')");
    }
    SUBCASE("not over a writer of its source") {
        g.named(half, "half");
        g.expand({half, g.named(stock().ggml_cpy(g.ctx(), g.a, g.b), "copy")});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('copy') writes storage that node 0 ('half') reads");
    }
}

TEST_CASE("FUSE-3: unknown side effects are neither moved nor crossed") {
    pair          g;
    ggml_tensor * custom = ops().ggml_map_custom1(g.ctx(), g.b, foreign_callback, 1, nullptr);
    SUBCASE("crossed") {
        g.expand({g.sqr, custom});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 (MAP_CUSTOM1) has side effects that are not known");
    }
    SUBCASE("moved") {
        g.expand({custom, g.sqr});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 0 (MAP_CUSTOM1) has side effects that are not known");
    }
    SUBCASE("an operation without a name") {
        g.expand({g.sqr, g.silu});
        g.sqr->op = 1000;
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 0 ('sqr') (an operation that ggml has no name for) has side effects that are not known");
    }
    SUBCASE("a registered operator has none") {
        ggml_tensor * src[] = {g.b};
        auto *        mark  = reinterpret_cast<void (*)(ggml_tensor *, int, int, void *)>(&marker);
        g.expand({g.sqr, stock().base.ggml_custom_4d(g.ctx(), TYPE_F32, 8, 4, 1, 1, src, 1, mark, 1, nullptr)});
        CHECK(delay(g, 0, 1, 2) == "");
    }
    SUBCASE("a custom operator of others has") {
        ggml_tensor * src[]   = {g.b};
        auto *        foreign = +[](ggml_tensor *, int, int, void *) {};
        g.expand({g.sqr, stock().base.ggml_custom_4d(g.ctx(), TYPE_F32, 8, 4, 1, 1, src, 1, foreign, 1, nullptr)});
        CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 (CUSTOM) has side effects that are not known");
    }
}

TEST_CASE("FUSE-3: a view that was made before its owner had an address aliases what lies there") {
    alignas(16) static float memory[8 * 32] = {};
    for (const size_t apart : {size_t{0}, sizeof(memory) / 2}) {
        CAPTURE(apart);
        pair g;
        g.expand({g.sqr, stock().ggml_cpy(g.ctx(), g.b, g.rows(0))}); // a's reader, then what writes into the cache
        g.a->data     = memory;
        g.cache->data = reinterpret_cast<char *>(memory) + apart;
        CHECK((delay(g, 0, 1, g.graph()->n_nodes) == "") == (apart != 0));
    }
}

TEST_CASE("FUSE-3: tensors of different owners alias where their addresses overlap") {
    pair  g;
    float memory[96];
    g.a->data = memory;
    g.b->data = memory + 16;
    g.expand({g.sqr, g.named(ops().ggml_scale_inplace(g.ctx(), g.b, 2.0f), "scale")});
    REQUIRE(g.graph()->nodes[1]->data == g.b->data);
    CHECK(delay(g, 0, 1, 2) == "FUSE-3: node 1 ('scale') writes storage that node 0 ('sqr') reads");
    g.b->data                 = memory + 32;
    g.graph()->nodes[1]->data = memory + 32;
    CHECK(delay(g, 0, 1, 2) == "");
}

TEST_CASE("FUSE-3: a node that stands in the graph twice does not move") {
    pair g;
    g.expand({g.sqr, g.silu});
    stock().ggml_graph_add_node(g.graph(), g.sqr);
    plan::graph_index index = g.index();
    CHECK(plan::delay(index, 0, 1, 2) == "FUSE-3: node 0 ('sqr') stands in the graph more than once");
}
