// FUSE-2: which runs of nodes may be fused. Each rule with a match that it accepts and one that it refuses.

#include "plan/legality.h"
#include "support/graph_fixture.h"

using namespace ggml_ext;
using namespace ggml_ext::test;
using plan::check_legal;

namespace {

// w1 -> MUL_MAT -> ADD(bias) -> SILU
struct chain : graph_fixture {
    ggml_tensor * x    = leaf(8, 4);
    ggml_tensor * bias = leaf(8, 1);
    ggml_tensor * mm   = stock().base.ggml_mul_mat(ctx(), leaf(8, 8), x);
    ggml_tensor * add  = stock().base.ggml_add(ctx(), mm, bias);
    ggml_tensor * silu = stock().ggml_silu(ctx(), add);
};

std::string check(const graph_fixture & g, int first, int count) {
    return check_legal(g.index(), first, count);
}

void foreign_callback(ggml_tensor *, const ggml_tensor *, int, int, void *) {}

} // namespace

TEST_CASE("FUSE-2: a chain of pure operations whose intermediates have one consumer is fused") {
    chain g;
    g.expand({g.silu});
    CHECK(check(g, 0, 3) == "");
    CHECK(check(g, 0, 2) == "");
    CHECK(check(g, 1, 2) == "");
    CHECK(check(g, 2, 1) == "");
}

TEST_CASE("FUSE-2: a match that is not all in the graph is refused") {
    chain g;
    g.expand({g.silu});
    CHECK(check(g, 2, 2) == "FUSE-2: nodes 2 to 3 are not all in the graph of 3 nodes");
    CHECK(check(g, -1, 2) == "FUSE-2: nodes -1 to 0 are not all in the graph of 3 nodes");
    CHECK(check(g, 0, 0) == "FUSE-2: nodes 0 to -1 are not all in the graph of 3 nodes");
    CHECK(check(g, 1, INT32_MAX) == "FUSE-2: nodes 1 to 2147483647 are not all in the graph of 3 nodes");
}

TEST_CASE("FUSE-2: a node that is not computed is not fused") {
    chain g;
    g.expand({g.silu});
    for (ggml_tensor * node : {g.mm, g.add, g.silu}) {
        node->flags &= ~16; // GGML_TENSOR_FLAG_COMPUTE
        CHECK(check(g, 0, 3).find("is not computed: its COMPUTE flag is not set") != std::string::npos);
        node->flags |= 16;
    }
    CHECK(check(g, 0, 3) == "");
}

TEST_CASE("FUSE-2: a node without elements is not fused") {
    graph_fixture g;
    ggml_tensor * a = stock().ggml_sqr(g.ctx(), g.leaf(8, 0));
    ggml_tensor * b = stock().ggml_silu(g.ctx(), a);
    g.expand({b});
    CHECK(check(g, 0, 2) == "FUSE-2: node 0 has no elements");
}

TEST_CASE("FUSE-2: an intermediate with a second consumer is not fused") {
    SUBCASE("outside the match") {
        chain g;
        g.named(g.add, "ffn_gate");
        g.expand({g.silu, stock().ggml_sqr(g.ctx(), g.add)});
        CHECK(check(g, 0, 3) == "FUSE-2: node 1 ('ffn_gate') has 2 consumers, 1 of them outside the match");
        CHECK(check(g, 0, 2) == "");
    }
    SUBCASE("none of them in the match") {
        chain g;
        g.expand({g.mm, stock().ggml_sqr(g.ctx(), g.x), g.silu});
        CHECK(check(g, 0, 2) == "FUSE-2: node 0 has 1 consumer, 1 of them outside the match");
    }
    SUBCASE("in a part of the graph that is not planned here") {
        chain g;
        g.expand({g.silu, stock().ggml_sqr(g.ctx(), g.add)});
        ggml_cgraph part = *g.graph();
        part.n_nodes     = 3;
        CHECK(check_legal(plan::graph_index(op_table(), &part), 0, 3) ==
              "FUSE-2: node 1 has 2 consumers, 1 of them outside the match");
    }
    SUBCASE("accepted where all consumers are in the match") {
        chain         g;
        ggml_tensor * gated = stock().ggml_mul(g.ctx(), g.silu, g.add);
        g.expand({gated, stock().ggml_sqr(g.ctx(), gated)});
        CHECK(check(g, 0, 4) == "");
        CHECK(check(g, 0, 3) == "FUSE-2: node 1 has 2 consumers, 1 of them outside the match");
    }
    SUBCASE("accepted where one node reads it twice") {
        chain g;
        g.expand({stock().ggml_mul(g.ctx(), g.mm, g.mm)});
        CHECK(check(g, 0, 2) == "");
    }
}

TEST_CASE("FUSE-2: an intermediate that nobody reads is not fused") {
    chain         g;
    ggml_tensor * unread = stock().ggml_sqr(g.ctx(), g.x);
    g.expand({g.mm, unread, g.add});
    CHECK(check(g, 0, 3) == "FUSE-2: node 1 has no consumer in the match");
    CHECK(check(g, 2, 1) == "");
}

TEST_CASE("FUSE-2: an intermediate flagged as output is not fused") {
    chain g;
    g.expand({g.silu});
    stock().base.ggml_set_output(g.silu);
    CHECK(check(g, 0, 3) == "");
    stock().base.ggml_set_output(g.add);
    CHECK(check(g, 0, 3) == "FUSE-2: node 1 is flagged as an output");
    CHECK(check(g, 0, 2) == "");
}

TEST_CASE("FUSE-2: an intermediate flagged as input is not fused") {
    chain g;
    g.expand({g.silu});
    stock().base.ggml_set_input(g.mm);
    CHECK(check(g, 0, 3) == "FUSE-2: node 0 is flagged as an input, a parameter or a loss");
}

TEST_CASE("FUSE-2: views inside a match belong to it, with their storage") {
    chain         g;
    ggml_tensor * reshaped = stock().ggml_reshape_2d(g.ctx(), g.mm, 4, 8);
    ggml_tensor * again    = stock().ggml_reshape_2d(g.ctx(), reshaped, 16, 2);
    ggml_tensor * norm     = stock().ggml_rms_norm(g.ctx(), again, 1e-6f);

    SUBCASE("a view, and a view of a view, of an earlier node are accepted") {
        g.expand({norm});
        CHECK(check(g, 0, 4) == "");
    }
    SUBCASE("a view of storage outside is refused") {
        g.expand({norm});
        CHECK(check(g, 1, 3) == "FUSE-2: node 1 ('" + std::string(reshaped->name) + "') (RESHAPE) is a view of storage outside the match");
    }
    SUBCASE("a view that is read outside is refused") {
        g.named(again, "heads");
        g.expand({norm, stock().ggml_sqr(g.ctx(), again)});
        CHECK(check(g, 0, 4) == "FUSE-2: node 2 ('heads') has 2 consumers, 1 of them outside the match");
    }
    SUBCASE("storage that is read through a view outside is refused") {
        g.expand({norm, stock().ggml_sqr(g.ctx(), stock().ggml_reshape_2d(g.ctx(), g.mm, 32, 1))});
        CHECK(check(g, 0, 4) == "FUSE-2: node 0 has 2 consumers, 1 of them outside the match");
    }
    SUBCASE("storage that is read outside through a tensor that is no node is refused") {
        g.expand({norm, stock().ggml_sqr(g.ctx(), ops().ggml_view_tensor(g.ctx(), g.mm))});
        CHECK(check(g, 0, 4) == "FUSE-2: node 0 is read outside the match by node 4 through its storage");
    }
    SUBCASE("storage that is read inside through a tensor that is no node is refused") {
        ggml_tensor * hidden = ops().ggml_view_tensor(g.ctx(), g.mm);
        g.expand({stock().ggml_mul(g.ctx(), g.add, hidden)});
        CHECK(check(g, 0, 3) == "FUSE-2: node 2 reads node 0 through a view that is no node of the match");
    }
}

TEST_CASE("FUSE-2: an in-place intermediate needs its owner earlier in the match") {
    chain         g;
    ggml_tensor * in_place = stock().ggml_add_inplace(g.ctx(), g.mm, g.bias);
    ggml_tensor * silu     = stock().ggml_silu(g.ctx(), in_place);
    g.named(in_place, "biased");

    SUBCASE("accepted with its owner") {
        g.expand({silu});
        CHECK(check(g, 0, 3) == "");
    }
    SUBCASE("refused without its owner") {
        g.expand({silu});
        CHECK(check(g, 1, 2) == "FUSE-2: node 1 ('biased') (ADD) writes to storage outside the match");
    }
    SUBCASE("refused where what it overwrote is read afterwards") {
        ggml_tensor * around = stock().ggml_mul(g.ctx(), silu, g.mm);
        g.expand({around});
        CHECK(check(g, 0, 4) == "FUSE-2: node 3 reads node 0 around node 1 ('biased'), which overwrote it");
    }
    SUBCASE("a chain of in-place operations is accepted") {
        ggml_tensor * scaled = ops().ggml_scale_inplace(g.ctx(), in_place, 2.0f);
        g.expand({stock().ggml_silu(g.ctx(), scaled)});
        CHECK(check(g, 0, 4) == "");
    }
}

TEST_CASE("FUSE-2: the final output owns its storage, save a terminal CPY") {
    chain         g;
    ggml_tensor * cache = g.leaf(16, 32);
    // 2-d view with a larger row stride than its rows
    ggml_tensor * slot = stock().ggml_view_2d(g.ctx(), cache, 8, 4, cache->nb[1], 8 * sizeof(float));

    SUBCASE("in-place: refused") {
        g.expand({stock().ggml_add_inplace(g.ctx(), g.mm, g.bias)});
        CHECK(check(g, 0, 2).find("(ADD) is the final output and owns no storage: only a CPY may write to another's") != std::string::npos);
    }
    SUBCASE("view: refused") {
        g.expand({g.mm, stock().ggml_reshape_2d(g.ctx(), g.mm, 4, 8)});
        CHECK(check(g, 0, 2).find("(RESHAPE) is the final output and owns no storage") != std::string::npos);
    }
    SUBCASE("SET_ROWS: refused") {
        g.expand({ops().ggml_set_rows(g.ctx(), g.leaf(8, 64), g.mm, stock().ggml_new_tensor_1d(g.ctx(), TYPE_I64, 4))});
        CHECK(check(g, 0, 2).find("(SET_ROWS) is the final output and owns no storage") != std::string::npos);
    }
    SUBCASE("terminal CPY into a 2-d view with a larger row stride: accepted") {
        g.expand({slot, stock().ggml_cpy(g.ctx(), g.add, slot)});
        REQUIRE(g.index().n_nodes() == 4);
        CHECK(check(g, 1, 3) == "");
    }
    SUBCASE("terminal CPY into a leaf: accepted") {
        g.expand({stock().ggml_cpy(g.ctx(), g.add, g.leaf(8, 4, TYPE_F16))});
        CHECK(check(g, 0, 3) == "");
    }
    SUBCASE("terminal conversion into a tensor of its own: accepted") {
        g.expand({ops().ggml_cast(g.ctx(), g.add, TYPE_F16)});
        CHECK(check(g, 0, 3) == "");
    }
    SUBCASE("terminal CPY with the view of its destination inside the match: refused") {
        g.named(slot, "slot");
        g.expand({stock().ggml_cpy(g.ctx(), g.add, slot)});
        CHECK(check(g, 0, 4) == "FUSE-2: node 2 ('slot') (VIEW) is a view of storage outside the match");
    }
    SUBCASE("terminal CPY into an intermediate: refused") {
        ggml_tensor * first = stock().ggml_sqr(g.ctx(), g.x);
        ggml_tensor * sum   = stock().base.ggml_add(g.ctx(), first, g.bias);
        g.named(first, "first");
        g.expand({stock().ggml_cpy(g.ctx(), sum, first)});
        CHECK(check(g, 0, 3).find("copies into node 0 ('first'), an intermediate of the match") != std::string::npos);
    }
}

TEST_CASE("FUSE-2: an intermediate that writes outside the match is refused") {
    chain g;
    SUBCASE("CPY") {
        ggml_tensor * copy = stock().ggml_cpy(g.ctx(), g.mm, g.leaf(8, 4));
        g.named(copy, "stored");
        g.expand({stock().ggml_silu(g.ctx(), copy)});
        CHECK(check(g, 0, 3) == "FUSE-2: node 1 ('stored') (CPY) writes to storage outside the match");
    }
    SUBCASE("SET_ROWS") {
        ggml_tensor * rows = ops().ggml_set_rows(g.ctx(), g.leaf(8, 64), g.mm, stock().ggml_new_tensor_1d(g.ctx(), TYPE_I64, 4));
        g.named(rows, "stored");
        g.expand({stock().ggml_silu(g.ctx(), rows)});
        CHECK(check(g, 0, 3) == "FUSE-2: node 1 ('stored') (SET_ROWS) writes to storage outside the match");
    }
    SUBCASE("a conversion with storage of its own is no write outside") {
        g.expand({ops().ggml_cast(g.ctx(), ops().ggml_cast(g.ctx(), g.mm, TYPE_F16), TYPE_F32)});
        CHECK(check(g, 0, 3) == "");
    }
}

TEST_CASE("FUSE-2: operations with unknown effects are not fused") {
    chain         g;
    ggml_tensor * custom = ops().ggml_map_custom1(g.ctx(), g.mm, foreign_callback, 1, nullptr);
    g.expand({stock().ggml_silu(g.ctx(), custom)});
    CHECK(check(g, 0, 3) == "FUSE-2: node 1 (MAP_CUSTOM1) may write outside the match: what it does is not known");
    CHECK(check(g, 1, 1) == ""); // an override replaces the node alone

    SUBCASE("but registered operators are") {
        chain         h;
        ggml_tensor * src[]  = {h.mm};
        auto *        mark   = reinterpret_cast<void (*)(ggml_tensor *, int, int, void *)>(&marker);
        ggml_tensor * swish  = stock().base.ggml_custom_4d(h.ctx(), TYPE_F32, 8, 4, 1, 1, src, 1, mark, 1, nullptr);
        ggml_tensor * result = stock().ggml_silu(h.ctx(), swish);
        h.expand({result});
        CHECK(check(h, 0, 3) == "");
    }
}

TEST_CASE("FUSE-2: a node that stands in the graph twice is not fused") {
    chain g;
    g.expand({g.silu});
    stock().ggml_graph_add_node(g.graph(), g.add);
    CHECK(check(g, 0, 3) == "FUSE-2: node 1 stands in the graph more than once");
}

TEST_CASE("FUSE-2: nodes whose consumers ggml did not count are not fused") {
    chain g;
    for (ggml_tensor * node : {g.mm, g.add, g.silu}) {
        stock().ggml_graph_add_node(g.graph(), node);
        node->flags |= 16; // GGML_TENSOR_FLAG_COMPUTE
    }
    CHECK(check(g, 0, 3) == "FUSE-2: node 0 has consumers that ggml has not counted");
}
