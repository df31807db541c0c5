#include "../common/partition.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

TEST_CASE("the shares of a grid cover it once, for any number of threads") {
    for (const int64_t m : {1, 2, 3, 11, 43}) {
        for (const int64_t n : {1, 2, 12, 48}) {
            for (const int nth : {1, 2, 3, 4, 6, 7, 16, 56}) {
                CAPTURE(m);
                CAPTURE(n);
                CAPTURE(nth);
                std::vector<int> covered(static_cast<std::size_t>(m * n));
                for (int ith = 0; ith < nth; ++ith) {
                    const tile2d share = share_grid(m, n, 12, 32, ith, nth);
                    for (int64_t i = share.m.begin; i < share.m.end; ++i) {
                        for (int64_t j = share.n.begin; j < share.n.end; ++j) {
                            ++covered[static_cast<std::size_t>(i * n + j)];
                        }
                    }
                }
                CHECK(covered == std::vector<int>(covered.size(), 1));
            }
        }
    }
}

TEST_CASE("few rows are shared out by columns, so that each weight is read once; many by rows, so that each row is packed once") {
    for (const int nth : {2, 4}) {
        const tile2d few = share_grid(2, 12, 12, 32, 0, nth);
        CHECK(few.m.end - few.m.begin == 2);
        CHECK(few.n.end - few.n.begin == 12 / nth);
        const tile2d many = share_grid(344, 12, 12, 32, 0, nth);
        CHECK(many.m.end - many.m.begin == 344 / nth);
        CHECK(many.n.end - many.n.begin == 12);
    }
}
