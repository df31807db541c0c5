#include "ggml-ext.h"
#include "registry/weight_changes.h"

#include <doctest/doctest.h>

#include <vector>

namespace {

constexpr size_t SIZE = 100;

struct kept_copy {
    const char * data;
    uint64_t     version = 0;

    bool changed() { return ggml_ext_weights_changed_since(&version, data, SIZE); }
};

} // namespace

TEST_CASE("CACHE-1: a copy is told of reported bytes that are its own, once, and of no others") {
    std::vector<char> memory(3 * SIZE);
    kept_copy         before{memory.data()}, copy{memory.data() + SIZE}, after{memory.data() + 2 * SIZE};
    const auto        told = [&] {
        return std::vector<bool>{before.changed(), copy.changed(), after.changed()};
    };
    CHECK(told() == std::vector<bool>{true, true, true}); // new
    CHECK(told() == std::vector<bool>{false, false, false});
    ggml_ext_weights_changed(copy.data, SIZE);
    CHECK(told() == std::vector<bool>{false, true, false});
    CHECK(told() == std::vector<bool>{false, false, false});
    ggml_ext_weights_changed(copy.data - 1, 1);
    ggml_ext_weights_changed(after.data + SIZE - 1, 1);
    ggml_ext_weights_changed(copy.data, 0);
    CHECK(told() == std::vector<bool>{true, false, true});
    ggml_ext_weights_changed(before.data + SIZE - 1, 2);
    CHECK(told() == std::vector<bool>{true, true, false});
    ggml_ext_weights_changed(before.data, SIZE_MAX);
    CHECK(told() == std::vector<bool>{true, true, true});
    CHECK(ggml_ext_weights_changed_since(nullptr, copy.data, SIZE));
    ggml_ext_weights_changed(copy.data, SIZE);
    CHECK(ggml_ext_weights_changed_since(&copy.version, before.data, SIZE_MAX)); // to the end of memory
}

TEST_CASE("CACHE-1: a copy that missed many reports is taken for changed") {
    std::vector<char> memory(2 * SIZE);
    kept_copy         copy{memory.data()}, idle{memory.data()};
    copy.changed();
    idle.changed();
    for (int i = 0; i < 100000; ++i) {
        ggml_ext_weights_changed(memory.data() + SIZE, SIZE);
        if (i % 1000 == 0) {
            REQUIRE(!copy.changed());
        }
    }
    CHECK(idle.changed());
    CHECK(!idle.changed());
}

TEST_CASE("CACHE-1: what graphs write is told to copies of these bytes, and does not crowd out other reports where nobody has one") {
    ggml_ext::weight_changes changes;
    std::vector<char>        memory(9 * SIZE);
    const auto               at    = [&](size_t i) { return memory.data() + i * SIZE; };
    uint64_t                 lower = 0, middle = 0, upper = 0;
    REQUIRE(changes.since(upper, at(7), SIZE));
    REQUIRE(changes.since(lower, at(1), SIZE));
    REQUIRE(changes.since(middle, at(4), SIZE));
    const auto told = [&] {
        return std::vector<bool>{changes.since(lower, at(1), SIZE), changes.since(middle, at(4), SIZE), changes.since(upper, at(7), SIZE)};
    };
    for (int i = 0; i < 100000; ++i) {
        changes.add_where_kept(at(0), SIZE); // ends where the lower one begins
        changes.add_where_kept(at(2), 2 * SIZE);
        changes.add_where_kept(at(8), SIZE);
    }
    CHECK(told() == std::vector<bool>{false, false, false});
    changes.add_where_kept(at(0), SIZE + 1);
    CHECK(told() == std::vector<bool>{true, false, false});
    changes.add_where_kept(at(5) - 1, 1);
    CHECK(told() == std::vector<bool>{false, true, false});
    changes.add_where_kept(at(2), 6 * SIZE);
    CHECK(told() == std::vector<bool>{false, true, true});
    uint64_t wide = 0; // over two of them and what lies between
    REQUIRE(changes.since(wide, at(1) + 1, 4 * SIZE));
    changes.add_where_kept(at(3), 1);
    CHECK(told() == std::vector<bool>{false, false, false});
    CHECK(changes.since(wide, at(1) + 1, 4 * SIZE));
    changes.add_where_kept(at(1), 1);
    CHECK(told() == std::vector<bool>{true, false, false});
    CHECK(!changes.since(wide, at(1) + 1, 4 * SIZE));
}
