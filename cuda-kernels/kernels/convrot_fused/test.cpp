#include "packed_rows.h"
#include "reference.h"

namespace {

const int SOURCES[] = {GGML_EXT_CUDA_CONVROT_SCALE, GGML_EXT_CUDA_CONVROT_RMS_NORM, GGML_EXT_CUDA_CONVROT_SWIGLU,
                       GGML_EXT_CUDA_CONVROT_SIGMOID_MUL};

// Where the rows of a and b lie: each by itself, or halves of one row, in either order.
enum gates {
    SEPARATE,
    PACKED,
    SWAPPED
};

struct problem {
    int     source;
    int64_t M, K;
    gates   where    = SEPARATE;
    bool    weighted = true;
    float   poison   = 0; // put into row 0 where not zero
};

void check(const problem & p) {
    CAPTURE(p.source);
    CAPTURE(p.M);
    CAPTURE(p.K);
    CAPTURE(p.where);
    const int64_t      stride  = 2 * p.K;
    std::vector<float> x       = test::uniform(p.M * stride, static_cast<unsigned>(p.K), -3, 3);
    const auto         weight  = test::uniform(p.K, 2, 0.5f, 2.0f);
    const int64_t      a_first = p.where == SWAPPED ? p.K : 0, b_first = p.where == PACKED ? p.K : 0;
    if (p.poison != 0) {
        x[static_cast<size_t>(a_first + 9)] = p.poison;
    }
    const auto                z = p.where == SEPARATE ? test::uniform(p.M * stride, 8, -3, 3) : x;
    const test::device<float> dx(x), dz(z), dweight(weight);
    const test::device<char>  out(static_cast<int64_t>(ggml_ext_cuda_convrot_size(p.M, p.K)));
    const test::device<char>  workspace(static_cast<int64_t>(ggml_ext_cuda_convrot_fused_workspace_size(p.M, p.K)));

    ggml_ext_cuda_convrot_fused_args args = {};
    args.source                           = p.source;
    args.M                                = p.M;
    args.K                                = p.K;
    args.padded_rows                      = ggml_ext_cuda_convrot_padded_rows(p.M);
    args.a                                = dx.data() + a_first;
    args.b                                = (p.where == SEPARATE ? dz : dx).data() + b_first;
    args.a_stride = args.b_stride = static_cast<size_t>(stride) * 4;
    args.weight                   = p.weighted ? dweight.data() : nullptr;
    args.eps                      = 1e-6f;
    args.scale                    = 0.37f;
    args.q                        = reinterpret_cast<int8_t *>(out.data());
    args.q_stride                 = static_cast<size_t>(p.K);
    args.out_scale                = reinterpret_cast<float *>(out.data() + ggml_ext_cuda_convrot_scale_offset(p.M, p.K));
    const int status              = ggml_ext_cuda_convrot_fused(&args, workspace.data(), workspace.bytes(), nullptr);
    REQUIRE_MESSAGE(status == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());

    const test::packed_rows packed = {p.M, p.K, out.get()};
    CHECK(packed.padding_is_zero());
    int64_t bad = 0;
    for (int64_t m = 0; m < p.M; m++) {
        if (m == 0 && p.poison != 0) {
            bad += !std::isnan(packed.scale(0));
            continue;
        }
        const auto y = reference::convrot_source(args, &x[static_cast<size_t>(m * stride + a_first)],
                                                 &z[static_cast<size_t>(m * stride + b_first)],
                                                 p.weighted ? weight.data() : nullptr);
        bad += !test::row_equals(packed, m, reference::rotate_groups(y, 256), {2e-6, 4e-4});
    }
    CHECK(bad == 0);
}

} // namespace

TEST_CASE("ROT-1: scale, RMSNorm with a weight, SwiGLU and sigmoid gates, then ConvRot, for every row length") {
    for (int source : SOURCES) {
        for (int64_t K : {256, 512, 768, 3840, 8448, 10240, 28672}) {
            check({source, 3, K});
        }
        check({source, 5, 3072});
    }
    check({GGML_EXT_CUDA_CONVROT_RMS_NORM, 3, 1024, SEPARATE, false});
}

TEST_CASE("ROT-1: gates that are halves of one row, in either order") {
    for (int source : {GGML_EXT_CUDA_CONVROT_SWIGLU, GGML_EXT_CUDA_CONVROT_SIGMOID_MUL}) {
        check({source, 3, 768, PACKED});
        check({source, 3, 768, SWAPPED});
    }
}

TEST_CASE("ROT-1: rows that several kernels share; RMSNorm refuses them") {
    for (int source : {GGML_EXT_CUDA_CONVROT_SCALE, GGML_EXT_CUDA_CONVROT_SWIGLU}) {
        check({source, 2, 33024});
    }
    const test::device<float>        x(33024), scale(1);
    const test::device<int8_t>       q(33024), workspace(64);
    ggml_ext_cuda_convrot_fused_args args = {};
    args.source                           = GGML_EXT_CUDA_CONVROT_RMS_NORM;
    args.M = args.padded_rows = 1;
    args.K                    = 33024;
    args.a                    = x.data();
    args.q                    = q.data();
    args.q_stride             = 33024;
    args.out_scale            = scale.data();
    CHECK(ggml_ext_cuda_convrot_fused(&args, workspace.data(), 64, nullptr) == GGML_EXT_CUDA_UNSUPPORTED);
    CHECK(scale.get()[0] == test::poison<float>());
}

TEST_CASE("ROT-1: NaN and infinity make their row's scale NaN and no other") {
    for (int source : SOURCES) {
        for (float poison : {NAN, INFINITY}) {
            if (source == GGML_EXT_CUDA_CONVROT_SIGMOID_MUL && std::isinf(poison)) {
                continue; // the sigmoid of an infinity is 1
            }
            problem p = {source, 3, 768};
            p.poison  = poison;
            check(p);
        }
    }
}

TEST_CASE("ROT-1: bad input is a status") {
    const test::device<float>        x(256), scale(1);
    const test::device<int8_t>       q(256);
    ggml_ext_cuda_convrot_fused_args good = {};
    good.source                           = GGML_EXT_CUDA_CONVROT_SWIGLU;
    good.M = good.padded_rows = 1;
    good.K                    = 256;
    good.a = good.b = x.data();
    good.q          = q.data();
    good.q_stride   = 256;
    good.out_scale  = scale.data();

    const auto with = [&](auto change) {
        ggml_ext_cuda_convrot_fused_args a = good;
        change(a);
        return ggml_ext_cuda_convrot_fused(&a, nullptr, 0, nullptr);
    };
    CHECK(with([](auto & a) { a.source = 4; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.K = 128; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.b = nullptr; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.a += 1; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.q += 1; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
    CHECK(with([](auto & a) { a.M = 0; }) == GGML_EXT_CUDA_INVALID_ARGUMENT);
}
