#include "device.h"
#include "reference.h"

#include <string>

namespace {

struct problem {
    int64_t d = 64, heads = 3, L = 5, N = 2, rot_first = 0, d_rot = 64;
    int     pairs = GGML_EXT_CUDA_ROPE_INTERLEAVED;
    bool    norm = false, weighted = true, f16 = false, in_place = false;
    int64_t pad1 = 0, pad2 = 0, pad3 = 0, first = 0; // floats; of x
    bool    permuted = false;                        // x is a view in which positions lie within heads
    int64_t pe_pair = 6, pe_pad = 3;                 // floats from pair to pair; after a position's pairs
    float   scale = 1;
};

struct layout {
    int64_t first, nb1, nb2, nb3, size; // elements

    int64_t at(int64_t h, int64_t l, int64_t n) const { return first + h * nb1 + l * nb2 + n * nb3; }
};

layout layout_of_x(const problem & p) {
    const int64_t row  = p.d + p.pad1;
    const int64_t mid  = (p.permuted ? p.L : p.heads) * row + p.pad2;
    const int64_t last = (p.permuted ? p.heads : p.L) * mid + p.pad3;
    return {p.first, p.permuted ? mid : row, p.permuted ? row : mid, last, p.N * last + p.first};
}

float half_value(uint16_t bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31) {
        return mantissa ? NAN : bits & 0x8000 ? -INFINITY
                                              : INFINITY;
    }
    const float v = exponent ? std::ldexp(1.0f + static_cast<float>(mantissa) / 1024, exponent - 15)
                             : std::ldexp(static_cast<float>(mantissa), -24);
    return bits & 0x8000 ? -v : v;
}

// dst has its own layout, rows with gaps that must stay poison.
void check(const problem & p, const reference::angles * angles = nullptr) {
    CAPTURE(p.d);
    CAPTURE(p.heads);
    CAPTURE(p.L);
    CAPTURE(p.rot_first);
    CAPTURE(p.d_rot);
    CAPTURE(p.pairs);
    CAPTURE(p.norm);
    CAPTURE(p.f16);
    CAPTURE(p.pad1);
    const layout in = layout_of_x(p);
    const layout out =
        p.in_place ? in : layout_of_x({p.d, p.heads, p.L, p.N, 0, 2, 0, false, false, false, false, p.pad1});
    const std::vector<float> x = test::uniform(in.size, 1, -2, 2), weight = test::uniform(p.d, 2, 0.5f, 2.0f);
    const int64_t            pairs = p.d_rot / 2, per_position = pairs * p.pe_pair + p.pe_pad;
    // general 2x2 matrices, so that no element of one can stand in for another
    const std::vector<float> pe = test::uniform(p.N * p.L * per_position, 3);

    const test::device<float>    dx(x), dweight(weight), dpe(pe);
    const test::device<float>    dst32(p.f16 || p.in_place ? 1 : out.size);
    const test::device<uint16_t> dst16(p.f16 ? out.size : 1);

    ggml_ext_cuda_rope_args a = {};
    a.d_head                  = p.d;
    a.n_head                  = p.heads;
    a.L                       = p.L;
    a.N                       = p.N;
    a.rot_first               = p.rot_first;
    a.d_rot                   = p.d_rot;
    a.pairs                   = p.pairs;
    a.x                       = dx.data() + in.first;
    a.x_nb1                   = static_cast<size_t>(in.nb1) * 4;
    a.x_nb2                   = static_cast<size_t>(in.nb2) * 4;
    a.x_nb3                   = static_cast<size_t>(in.nb3) * 4;
    a.dst_f16                 = p.f16;
    const size_t element      = p.f16 ? 2 : 4;
    a.dst                     = p.f16 ? static_cast<void *>(dst16.data()) : p.in_place ? dx.data() + in.first
                                                                                       : dst32.data();
    a.dst_nb1                 = static_cast<size_t>(out.nb1) * element;
    a.dst_nb2                 = static_cast<size_t>(out.nb2) * element;
    a.dst_nb3                 = static_cast<size_t>(out.nb3) * element;
    a.norm                    = p.norm;
    a.eps                     = 1e-6f;
    a.weight                  = p.weighted ? dweight.data() : nullptr;
    a.scale                   = p.scale;

    std::vector<int32_t>        no_positions(1);
    const test::device<int32_t> positions(angles ? angles->positions : no_positions);
    const test::device<float>   factors(angles && !angles->factors.empty() ? angles->factors : weight);
    ggml_ext_cuda_rope_angles   node = angles ? angles->node : ggml_ext_cuda_rope_angles{};
    if (angles) {
        node.positions    = positions.data();
        node.freq_factors = angles->factors.empty() ? nullptr : factors.data();
        a.angles          = &node;
    } else {
        a.pe          = dpe.data();
        a.pe_pair     = static_cast<size_t>(p.pe_pair) * 4;
        a.pe_position = static_cast<size_t>(per_position) * 4;
        a.pe_batch    = static_cast<size_t>(p.L) * a.pe_position;
    }
    const int status = ggml_ext_cuda_rope(&a, nullptr);
    REQUIRE_MESSAGE(status == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());

    std::vector<float> got;
    std::vector<bool>  written(static_cast<size_t>(out.size), p.in_place);
    if (p.f16) {
        for (uint16_t bits : dst16.get()) {
            got.push_back(half_value(bits));
        }
    } else {
        got = p.in_place ? dx.get() : dst32.get();
    }

    int64_t bad = 0;
    for (int64_t n = 0; n < p.N; n++) {
        for (int64_t l = 0; l < p.L; l++) {
            for (int64_t h = 0; h < p.heads; h++) {
                const float *       row       = &x[static_cast<size_t>(in.at(h, l, n))];
                std::vector<double> y         = p.norm
                                                    ? reference::normed(row, p.d, a.eps, p.weighted ? weight.data() : nullptr)
                                                    : std::vector<double>(row, row + p.d);
                double              tolerance = 2e-6;
                for (int64_t i = 0; i < pairs; i++) {
                    if (angles) {
                        reference::rotate(y, a, i, reference::rotation(*angles, p.d_rot, l, i));
                        tolerance = 2e-6 + 1.5e-6 * std::abs(angles->positions[static_cast<size_t>(l)]); // float angles
                    } else {
                        const float * m = &pe[static_cast<size_t>((n * p.L + l) * per_position + i * p.pe_pair)];
                        reference::rotate(y, a, i, {m[0], m[1], m[2], m[3]});
                    }
                }
                tolerance += p.f16 ? 1.0 / 2048 : 0;
                for (int64_t i = 0; i < p.d; i++) {
                    const double expected = y[static_cast<size_t>(i)] * p.scale;
                    const auto   at       = static_cast<size_t>(out.at(h, l, n) + i);
                    written[at]           = true;
                    bad += !(std::fabs(got[at] - expected) <= tolerance * (1 + std::fabs(expected)));
                }
            }
        }
    }
    CHECK(bad == 0);
    const float untouched = p.f16 ? half_value(test::poison<uint16_t>()) : test::poison<float>();
    int64_t     spilled   = 0;
    for (size_t i = 0; i < written.size(); i++) {
        spilled += !written[i] && !(std::isnan(untouched) ? std::isnan(got[i]) : got[i] == untouched);
    }
    CHECK(spilled == 0);
}

reference::angles angles_of(int64_t L, int32_t step, bool yarn, int64_t factors) {
    reference::angles a = {
        {nullptr, nullptr, 4096, 10000.0f, yarn ? 0.25f : 1.0f, yarn ? 1.0f : 0.0f, 1.0f, 32.0f, 1.0f}, {}, {}};
    for (int32_t l = 0; l < L; l++) {
        a.positions.push_back(l * step);
    }
    a.factors = test::uniform(factors, 4, 0.5f, 4.0f);
    return a;
}

const int PAIRS[] = {GGML_EXT_CUDA_ROPE_INTERLEAVED, GGML_EXT_CUDA_ROPE_SPLIT_HALF};

} // namespace

TEST_CASE("ROPE-1: interleaved and split-half pairs, whole and partial rotation, any width") {
    for (int pairs : PAIRS) {
        for (int64_t d : {2, 6, 16, 30, 32, 64, 80, 128, 192, 256, 320}) {
            for (int64_t d_rot : {int64_t{2}, d / 4 * 2, d / 16 * 8, d / 32 * 16, d}) {
                if (d_rot < 2) {
                    continue;
                }
                problem p;
                p.d     = d;
                p.d_rot = d_rot;
                p.pairs = pairs;
                check(p);
                p.rot_first = (d - d_rot) / 4 * 2;
                check(p);
                p.rot_first = (d - d_rot) / 16 * 8;
                p.pe_pair   = 4; // matrices that may be read as vectors
                p.pe_pad    = 4;
                check(p);
            }
        }
    }
}

TEST_CASE("ROPE-1: permuted x, a view with offset, padding of nb1, nb2, nb3 each alone, aligned and not") {
    for (int pairs : PAIRS) {
        for (bool norm : {false, true}) {
            for (int64_t pad : {3, 4}) {
                problem p;
                p.pairs    = pairs;
                p.norm     = norm;
                p.d_rot    = 48;
                problem q  = p;
                q.permuted = true;
                check(q);
                for (int64_t problem::* which : {&problem::first, &problem::pad1, &problem::pad2, &problem::pad3}) {
                    q        = p;
                    q.*which = pad;
                    check(q);
                }
            }
        }
    }
}

TEST_CASE("ROPE-1: few heads, so that a block takes several tokens, over positions and batches") {
    for (int pairs : PAIRS) {
        for (int64_t heads : {1, 2, 3, 4, 5, 8}) {
            for (int64_t d : {16, 128, 256}) {
                for (int64_t L : {int64_t{7}, 48000 / (d * heads) + 1}) { // smaller blocks, so that there are more; full ones
                    problem p;
                    p.pairs = pairs;
                    p.d     = d;
                    p.d_rot = d / 2;
                    p.heads = heads;
                    p.L     = L;
                    p.N     = 3;
                    p.norm  = heads % 2 == 0;
                    check(p);
                    const reference::angles angles = angles_of(p.L, 3, false, 0);
                    check(p, &angles);
                }
            }
        }
    }
}

TEST_CASE("ROPE-1: one head, one position, more heads than a block holds, more than 65,535 rows, in place") {
    for (int pairs : PAIRS) {
        problem p;
        p.pairs = pairs;
        p.heads = p.L = p.N = 1;
        check(p);
        p.L = 7;
        check(p);
        p.heads = 131;
        check(p);
        p.L = 30; // enough blocks for several heads a thread
        check(p);
        p.L = 7;
        p.d = p.d_rot = 30; // the general kernel
        check(p);
        p       = {};
        p.pairs = pairs;
        p.d = p.d_rot = 16;
        p.heads       = 1;
        p.L           = 70001;
        p.N           = 1;
        check(p);
        p.d = p.d_rot = 6;
        check(p);
        for (int64_t d : {64, 66}) {
            p          = {};
            p.pairs    = pairs;
            p.d        = d;
            p.in_place = true;
            p.d_rot    = 40;
            check(p);
            p.norm = true;
            check(p);
        }
    }
}

TEST_CASE("ROPE-1: more heads than blocks of a grid could share out; each is at one place here") {
    const int64_t             d = 256, heads = int64_t{65535} * 32 + 1; // a block of the fast kernel takes 32
    const std::vector<float>  x = test::uniform(d, 1), pe = test::uniform(d * 2, 2);
    const test::device<float> from(x), matrices(pe), to(d);
    ggml_ext_cuda_rope_args   args = {};
    args.d_head = args.d_rot = d;
    args.n_head              = heads;
    args.L = args.N  = 1;
    args.x           = from.data();
    args.dst         = to.data();
    args.pe          = matrices.data();
    args.pe_pair     = 16;
    args.pe_position = static_cast<std::size_t>(d) * 8;
    args.scale       = 1;
    REQUIRE_MESSAGE(ggml_ext_cuda_rope(&args, nullptr) == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());
    const std::vector<float> y = to.get();
    std::vector<double>      expected(x.begin(), x.end());
    for (int64_t i = 0; i < d / 2; i++) {
        const float * m = &pe[static_cast<std::size_t>(4 * i)];
        reference::rotate(expected, args, i, {m[0], m[1], m[2], m[3]});
    }
    for (std::size_t i = 0; i < y.size(); i++) {
        REQUIRE(y[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
}

TEST_CASE("ROPE-2: ggml's angles, with and without frequency factors, YaRN") {
    for (int pairs : PAIRS) {
        for (int64_t d : {64, 128, 96}) {
            for (bool yarn : {false, true}) {
                for (int32_t step : {1, 17, 900}) {
                    problem p;
                    p.pairs = pairs;
                    p.d     = d;
                    p.d_rot = d / 2;
                    p.heads = 5;
                    check(p, std::vector<reference::angles>{angles_of(p.L, step, yarn, 0)}.data());
                    check(p, std::vector<reference::angles>{angles_of(p.L, step, yarn, p.d_rot / 2)}.data());
                }
            }
        }
    }
}

TEST_CASE("ROPE-3: RMSNorm, weight and rotation in one pass, with scale and FP16 output") {
    for (int pairs : PAIRS) {
        for (int64_t d : {6, 16, 64, 80, 128, 130, 256}) {
            for (bool f16 : {false, true}) {
                for (int64_t L : {5, 40}) { // one head a thread, several
                    problem p;
                    p.d     = d;
                    p.d_rot = d;
                    p.pairs = pairs;
                    p.norm  = true;
                    p.f16   = f16;
                    p.heads = 24;
                    p.L     = L;
                    check(p);
                    p.weighted = false;
                    p.scale    = 0.125f;
                    check(p);
                    p.pad1 = 2;
                    check(p);
                }
            }
        }
    }
}

TEST_CASE("ROPE-1: a NaN or an infinity stays in its own pair and its own row") {
    for (int pairs : PAIRS) {
        for (int64_t d : {64, 66}) {
            std::vector<float> x(static_cast<size_t>(2 * d), 1.0f), pe(static_cast<size_t>(d / 2 * 4), 0.5f);
            x[static_cast<size_t>(d + 60)] = INFINITY; // not rotated
            x[1]                           = NAN;
            const test::device<float> dx(x), dpe(pe), dst(2 * d);
            ggml_ext_cuda_rope_args   a = {};
            a.d_head                    = d;
            a.n_head                    = 2;
            a.L = a.N = 1;
            a.d_rot   = 32;
            a.pairs   = pairs;
            a.x       = dx.data();
            a.dst     = dst.data();
            a.x_nb1 = a.dst_nb1 = static_cast<size_t>(d) * 4;
            a.pe                = dpe.data();
            a.pe_pair           = 16;
            a.scale             = 1;
            REQUIRE(ggml_ext_cuda_rope(&a, nullptr) == GGML_EXT_CUDA_OK);
            const auto y       = dst.get();
            const auto partner = static_cast<size_t>(pairs == GGML_EXT_CUDA_ROPE_INTERLEAVED ? 0 : 17);
            for (size_t i = 0; i < y.size(); i++) {
                CAPTURE(i);
                if (i == 1 || i == partner) {
                    CHECK(std::isnan(y[i]));
                } else {
                    CHECK(y[i] == (i == static_cast<size_t>(d + 60) ? INFINITY : 1.0f));
                }
            }
        }
    }
}

TEST_CASE("ROPE-1: bad input is a status, and nothing is written") {
    const test::device<float> x(64), dst(64), pe(128);
    ggml_ext_cuda_rope_args   good = {};
    good.d_head = good.d_rot = 64;
    good.n_head = good.L = good.N = 1;
    good.x                        = x.data();
    good.dst                      = dst.data();
    good.pe                       = pe.data();
    good.pe_pair                  = 16;
    good.scale                    = 1;

    const auto with = [&](auto change) {
        ggml_ext_cuda_rope_args a = good;
        change(a);
        return ggml_ext_cuda_rope(&a, nullptr);
    };
    CHECK(with([](auto & a) { a.d_head = 0; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.d_rot = 63; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.rot_first = 2; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.pairs = 2; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x = nullptr; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.x_nb1 = 2; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.pe = nullptr; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.norm = 1, a.eps = -1; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.d_head = a.d_rot = 4098; }) == GGML_EXT_CUDA_UNSUPPORTED);
    CHECK(with([](auto & a) { a.L = a.N = INT64_C(1) << 40; }) == GGML_EXT_CUDA_UNSUPPORTED);
    for (float v : dst.get()) {
        CHECK(v == test::poison<float>());
    }
}
