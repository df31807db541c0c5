#include "ggml-ext-kernels/rope.h"
#include "reference.h"
#include "support.h"

#include <doctest/doctest.h>

namespace {

// An x or dst of [d, heads, L, N] with bytes between heads, positions, batches, and guards in the gaps.
struct view {
    std::vector<float> data;
    size_t             first, nb1, nb2, nb3;
};

struct problem {
    int64_t d = 64, heads = 3, L = 5, N = 2, rot_first = 0, d_rot = 64;
    int     pairs = GGML_EXT_CPU_ROPE_INTERLEAVED, nth = 1;
    bool    norm = false, matrices = true, in_place = false;
    int64_t pad1 = 0, pad2 = 0, pad3 = 0, first = 0; // floats; of x
    bool    permuted = false;                        // x is a view in which positions lie within heads
};

view make_x(const problem & p, unsigned seed) {
    view v;
    v.first            = static_cast<size_t>(p.first);
    const int64_t row  = p.d + p.pad1;
    const int64_t mid  = (p.permuted ? p.L : p.heads) * row + p.pad2;
    const int64_t last = (p.permuted ? p.heads : p.L) * mid + p.pad3;
    v.nb1              = static_cast<size_t>(p.permuted ? mid : row) * 4;
    v.nb2              = static_cast<size_t>(p.permuted ? row : mid) * 4;
    v.nb3              = static_cast<size_t>(last) * 4;
    v.data             = test::uniform(static_cast<size_t>(p.N * last + p.first), seed, -2, 2);
    return v;
}

ggml_ext_cpu_rope_args arguments(const problem & p, const view & x, view & dst) {
    ggml_ext_cpu_rope_args a = {};
    a.d_head                 = p.d;
    a.n_head                 = p.heads;
    a.L                      = p.L;
    a.N                      = p.N;
    a.rot_first              = p.rot_first;
    a.d_rot                  = p.d_rot;
    a.pairs                  = p.pairs;
    a.x                      = x.data.data() + x.first;
    a.x_nb1                  = x.nb1;
    a.x_nb2                  = x.nb2;
    a.x_nb3                  = x.nb3;
    a.dst                    = dst.data.data() + dst.first;
    a.dst_nb1                = dst.nb1;
    a.dst_nb2                = dst.nb2;
    a.dst_nb3                = dst.nb3;
    return a;
}

int run(const ggml_ext_cpu_rope_args & a, int nth) {
    return test::on_threads(nth, [&](int ith) {
        std::vector<char> scratch(ggml_ext_cpu_rope_scratch_size(a.d_head));
        return ggml_ext_cpu_rope(&a, scratch.data(), scratch.size(), ith, nth);
    });
}

void check(const problem & p, const ggml_ext_cpu_rope_angles * angles = nullptr) {
    CAPTURE(p.d);
    CAPTURE(p.rot_first);
    CAPTURE(p.d_rot);
    CAPTURE(p.pairs);
    const view x   = make_x(p, 1);
    view       dst = p.in_place ? x : make_x({p.d, p.heads, p.L, p.N}, 9);
    if (!p.in_place) {
        dst.data.resize(dst.data.size() + 32);
        dst.data.assign(dst.data.size(), test::GUARD);
    }
    ggml_ext_cpu_rope_args   a      = arguments(p, p.in_place ? dst : x, dst);
    const std::vector<float> weight = test::uniform(static_cast<size_t>(p.d), 2, 0.5f, 2.0f);
    a.norm                          = p.norm;
    a.eps                           = 1e-6f;
    a.weight                        = weight.data();

    // general 2x2 matrices, so that no element of one can stand in for another; strided pairs and positions
    const int64_t            pairs = p.d_rot / 2;
    const std::vector<float> pe    = test::uniform(static_cast<size_t>(p.N * p.L * (pairs * 6 + 3)), 3);
    a.pe                           = angles ? nullptr : pe.data();
    a.pe_pair                      = 24;
    a.pe_position                  = static_cast<size_t>(pairs * 6 + 3) * 4;
    a.pe_batch                     = static_cast<size_t>(p.L) * a.pe_position;
    a.angles                       = angles;
    REQUIRE(run(a, p.nth) == GGML_EXT_CPU_OK);

    int64_t bad = 0;
    for (int64_t n = 0; n < p.N; n++) {
        for (int64_t l = 0; l < p.L; l++) {
            for (int64_t h = 0; h < p.heads; h++) {
                const float *       in = &x.data[x.first + static_cast<size_t>(h) * x.nb1 / 4 +
                                           static_cast<size_t>(l) * x.nb2 / 4 + static_cast<size_t>(n) * x.nb3 / 4];
                std::vector<double> y =
                    p.norm ? reference::normed(in, p.d, a.eps, a.weight) : std::vector<double>(in, in + p.d);
                double tolerance = 2e-6;
                for (int64_t i = 0; i < pairs; i++) {
                    std::vector<double> m;
                    if (angles) {
                        m         = reference::rotation(*angles, p.d_rot, angles->positions[l], i);
                        tolerance = 2e-6 + 1.5e-6 * std::abs(angles->positions[l]); // float angles
                    } else {
                        const float * f = &pe[static_cast<size_t>(n) * a.pe_batch / 4 +
                                              static_cast<size_t>(l) * a.pe_position / 4 + static_cast<size_t>(i) * 6];
                        m.assign(f, f + 4);
                    }
                    reference::rotate(y, a, i, m);
                }
                const float * out =
                    &dst.data[dst.first + static_cast<size_t>(h) * dst.nb1 / 4 + static_cast<size_t>(l) * dst.nb2 / 4 +
                              static_cast<size_t>(n) * dst.nb3 / 4];
                for (int64_t i = 0; i < p.d; i++) {
                    bad += !(std::fabs(out[i] - y[static_cast<size_t>(i)]) <=
                             tolerance * (1 + std::fabs(y[static_cast<size_t>(i)])));
                }
            }
        }
    }
    CHECK(bad == 0);
    for (size_t i = 0; !p.in_place && i < 32; i++) {
        CHECK(dst.data[dst.data.size() - 1 - i] == test::GUARD);
    }
}

const int PAIRS[] = {GGML_EXT_CPU_ROPE_INTERLEAVED, GGML_EXT_CPU_ROPE_SPLIT_HALF};

} // namespace

TEST_CASE("ROPE-1: interleaved and split-half pairs, whole and partial rotation, every tail") {
    for (int pairs : PAIRS) {
        for (int64_t d : {2, 4, 6, 10, 16, 18, 30, 34, 64, 80, 128}) {
            for (int64_t d_rot = 2; d_rot <= d; d_rot += d > 16 ? 14 : 2) {
                problem p;
                p.d     = d;
                p.d_rot = d_rot;
                p.pairs = pairs;
                check(p);
                p.rot_first = (d - d_rot) / 4 * 2;
                check(p);
            }
        }
    }
}

TEST_CASE("ROPE-1: permuted x, a view with offset, padding of nb1, nb2, nb3 each alone") {
    for (int pairs : PAIRS) {
        for (bool norm : {false, true}) {
            problem p;
            p.pairs    = pairs;
            p.norm     = norm;
            p.d_rot    = 48;
            problem q  = p;
            q.permuted = true;
            check(q);
            q       = p;
            q.first = 7;
            check(q);
            q      = p;
            q.pad1 = 3;
            check(q);
            q      = p;
            q.pad2 = 5;
            check(q);
            q      = p;
            q.pad3 = 9;
            check(q);
        }
    }
}

TEST_CASE("ROPE-1: one head, one position; more threads than rows; in place") {
    for (int pairs : PAIRS) {
        problem p;
        p.pairs = pairs;
        p.heads = p.L = p.N = 1;
        check(p);
        p.nth = 4;
        check(p);
        p          = {};
        p.pairs    = pairs;
        p.nth      = 3;
        p.in_place = true;
        p.d_rot    = 36;
        check(p);
        p.norm = true;
        check(p);
    }
}

TEST_CASE("ROPE-3: RMSNorm, weight and rotation in one pass") {
    for (int pairs : PAIRS) {
        for (int64_t d : {6, 64, 80, 128, 130}) {
            problem p;
            p.d     = d;
            p.d_rot = d;
            p.pairs = pairs;
            p.norm  = true;
            p.nth   = 2;
            check(p);
        }
    }
}

TEST_CASE("ROPE-2: ggml's angles with and without frequency factors and YaRN") {
    const int32_t            positions[] = {0, 1, 17, -3, 300};
    const std::vector<float> factors     = test::uniform(64, 5, 1.0f, 4.0f);
    for (int pairs : PAIRS) {
        for (float ext_factor : {0.0f, 1.0f, 0.7f}) {
            for (const float * freq_factors : {static_cast<const float *>(nullptr), factors.data()}) {
                for (float freq_base : {10000.0f, 500000.0f}) {
                    const ggml_ext_cpu_rope_angles angles = {
                        positions, freq_factors, 4096, freq_base, ext_factor != 0 ? 0.25f : 1.0f,
                        ext_factor, 1.2f, 32.0f, 1.0f};
                    problem p;
                    p.d     = 128;
                    p.d_rot = 96;
                    p.pairs = pairs;
                    check(p, &angles);
                    p.norm = true;
                    check(p, &angles);
                }
            }
        }
    }
}

TEST_CASE("ROPE-2: the sine and cosine of any float angle, of all quadrants and beyond the vector kernels' range") {
    std::vector<int32_t> positions;
    for (int32_t i = -2000; i <= 2000; i++) {
        positions.push_back(i);
    }
    for (int32_t p : {355, 103993, 833719, 1048575, 1048576, 1048577, 2000000, 1 << 24, INT32_MAX, INT32_MIN}) {
        positions.push_back(p);
    }
    for (float scale : {1.0f, 0.0123f, 0.7853982f, 17.3f}) {
        const auto                     L      = static_cast<int64_t>(positions.size());
        const ggml_ext_cpu_rope_angles angles = {positions.data(), nullptr, 4096, 10000.0f, scale, 0.0f, 1.0f, 32.0f, 1.0f};
        std::vector<float>             x, dst(static_cast<size_t>(2 * L));
        for (int64_t i = 0; i < L; i++) {
            x.insert(x.end(), {1.0f, 0.0f});
        }
        ggml_ext_cpu_rope_args a = {};
        a.d_head = a.d_rot = 2;
        a.n_head = a.N = 1;
        a.L            = L;
        a.x            = x.data();
        a.dst          = dst.data();
        a.x_nb1 = a.x_nb2 = a.dst_nb1 = a.dst_nb2 = 8;
        a.angles                                  = &angles;
        REQUIRE(run(a, 1) == GGML_EXT_CPU_OK);
        double largest = 0;
        for (size_t i = 0; i < positions.size(); i++) {
            const auto angle = static_cast<double>(scale * static_cast<float>(positions[i])); // in float, as ggml has it
            largest          = std::fmax(largest, std::fabs(dst[2 * i] - std::cos(angle)));
            largest          = std::fmax(largest, std::fabs(dst[2 * i + 1] - std::sin(angle)));
        }
        CAPTURE(scale);
        CHECK(largest <= 1.2e-7);
    }
}

TEST_CASE("rope: bad input is a status and writes nothing") {
    problem                      p;
    const view                   x      = make_x(p, 1);
    view                         dst    = x;
    const std::vector<float>     before = dst.data, pe(4 * 32 * 5);
    const ggml_ext_cpu_rope_args good   = [&] {
        ggml_ext_cpu_rope_args a = arguments(p, x, dst);
        a.pe                     = pe.data();
        a.pe_pair                = 16;
        a.pe_position            = 16 * 32;
        return a;
    }();
    auto with = [&](auto change) {
        ggml_ext_cpu_rope_args a = good;
        change(a);
        return run(a, 1);
    };
    CHECK(with([](auto & a) { a.d_rot = 63; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.d_rot = 66; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.rot_first = 2; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.rot_first = 2, a.d_rot = INT64_MAX - 1; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.n_head = a.L = int64_t{1} << 40; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.pairs = 2; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.pe = nullptr; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_nb1 = 258; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x = test::off_by_one(a.x); }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.pe_pair += 1; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.norm = 1, a.eps = -1; }) == GGML_EXT_CPU_INVALID_ARGUMENT);
    char small[16];
    CHECK(ggml_ext_cpu_rope(&good, small, sizeof(small), 0, 1) == GGML_EXT_CPU_SMALL_BUFFER);
    CHECK(dst.data == before);
}
