#pragma once

// That a share of a packing reads the rows that it says, and all shares together read each row once.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace test {

// pack(w, packed, ith, nth) packs a share of N rows of K into `size` bytes; share_of(N, ith, nth, &begin, &end) tells its rows.
template <typename T, typename Pack, typename Share>
void check_pack_shares(const std::vector<T> & w, T other, int64_t N, int64_t K, std::size_t size, Pack && pack, Share && share_of) {
    std::vector<char> whole(size);
    REQUIRE(pack(w, whole, 0, 1) == 0);
    for (const int nth : {1, 2, 3, 7, 64}) {
        CAPTURE(N);
        CAPTURE(nth);
        std::vector<char> parts(size);
        int64_t           next = 0;
        for (int ith = 0; ith < nth; ith++) {
            int64_t begin = -1, end = -1;
            share_of(N, ith, nth, &begin, &end);
            CHECK(begin == next);
            CHECK(end >= begin);
            next = end;
            std::vector<T> elsewhere(w.size(), other);
            std::copy(w.begin() + begin * K, w.begin() + end * K, elsewhere.begin() + begin * K);
            REQUIRE(pack(elsewhere, parts, ith, nth) == 0);
        }
        CHECK(next == N);
        CHECK(parts == whole);
    }
    int64_t begin = -1, end = -1;
    share_of(0, 0, 1, &begin, &end);
    CHECK(begin == end);
    share_of(64, 2, 2, &begin, &end);
    CHECK(begin == end);
}

} // namespace test
