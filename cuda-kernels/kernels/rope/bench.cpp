#include "bench.h"
#include "reference.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace {

struct shape {
    const char * name;
    int64_t      heads, L;
    int          pairs;
    bool         norm, f16, angles;
};

double from_half(const char * data) {
    uint16_t bits;
    std::memcpy(&bits, data, 2);
    const double v = std::ldexp((bits & 1023) + (bits & 0x7C00 ? 1024 : 0), std::max(bits >> 10 & 31, 1) - 25);
    return bits & 0x8000 ? -v : v;
}

void run(const shape & s) {
    const int64_t d = 128, values = d * s.heads * s.L;
    const size_t  x_bytes = static_cast<size_t>(values) * 4, out_bytes = static_cast<size_t>(values) * (s.f16 ? 2 : 4);
    const size_t  pe_bytes = s.angles ? 0 : static_cast<size_t>(s.L * d / 2) * 16;
    const size_t  out_at = bench::apart(x_bytes), pe_at = out_at + bench::apart(out_bytes),
                 set         = pe_at + bench::apart(pe_bytes);
    const int           sets = bench::sets_of(set);
    const bench::memory memory(set * static_cast<size_t>(sets)), weight(512), positions(static_cast<size_t>(s.L) * 4);
    reference::angles   angles = {
        {reinterpret_cast<const int32_t *>(positions.data()), nullptr, 4096, 10000.0f, 1, 0, 1, 32, 1}, {}, {}};
    for (int32_t l = 0; l < s.L; l++) {
        angles.positions.push_back(l);
    }
    bench::check(
        cudaMemcpy(positions.data(), angles.positions.data(), static_cast<size_t>(s.L) * 4, cudaMemcpyHostToDevice),
        "cudaMemcpy");

    ggml_ext_cuda_rope_args a = {};
    a.d_head = a.d_rot = d;
    a.n_head           = s.heads;
    a.L                = s.L;
    a.N                = 1;
    a.pairs            = s.pairs;
    a.x_nb1            = static_cast<size_t>(d) * 4;
    a.x_nb2            = a.x_nb1 * static_cast<size_t>(s.heads);
    a.dst_f16          = s.f16;
    a.dst_nb1          = static_cast<size_t>(d) * (s.f16 ? 2 : 4);
    a.dst_nb2          = a.dst_nb1 * static_cast<size_t>(s.heads);
    a.pe_pair          = 16;
    a.pe_position      = static_cast<size_t>(d / 2) * 16;
    a.angles           = &angles.node;
    a.norm             = s.norm;
    a.eps              = 1e-6f;
    a.weight           = reinterpret_cast<const float *>(weight.data());
    a.scale            = 1;

    const auto args_of = [&](int i) {
        char * base = memory.data() + set * static_cast<size_t>(i);
        a.x         = reinterpret_cast<const float *>(base);
        a.dst       = base + out_at;
        a.pe        = s.angles ? nullptr : reinterpret_cast<const float *>(base + pe_at);
        return a;
    };
    const double us = bench::replay_us(sets, [&](int i, cudaStream_t stream) {
        const ggml_ext_cuda_rope_args args = args_of(i);
        bench::check(ggml_ext_cuda_rope(&args, stream));
    });

    const auto data = memory.floats(0, set / 4), weights = weight.floats(0, static_cast<size_t>(d));
    double     error = 0;
    for (int64_t row = 0; row < s.heads * s.L; row += 37) {
        const float *       x = &data[static_cast<size_t>(row * d)];
        const int64_t       l = row / s.heads;
        std::vector<double> y = s.norm ? reference::normed(x, d, a.eps, weights.data()) : std::vector<double>(x, x + d);
        for (int64_t i = 0; i < d / 2; i++) {
            const float * m = &data[pe_at / 4 + static_cast<size_t>((l * d / 2 + i) * 4) * !s.angles];
            reference::rotate(
                y, a, i, s.angles ? reference::rotation(angles, d, l, i) : reference::matrix{m[0], m[1], m[2], m[3]});
        }
        const char * out = reinterpret_cast<const char *>(data.data()) + out_at;
        for (int64_t i = 0; i < d; i++) {
            const auto   at  = static_cast<size_t>(row * d + i);
            const double got = s.f16 ? from_half(out + at * 2) : static_cast<double>(data[out_at / 4 + at]);
            error            = std::fmax(error, std::fabs(got - y[static_cast<size_t>(i)]));
        }
    }
    bench::table_row({s.name, error, x_bytes + out_bytes + pe_bytes, us});
}

} // namespace

void rope_bench() {
    bench::table_head("rope, d_head 128, heads x positions", "largest error, |x| <= 1 or normed");
    const int   inter = GGML_EXT_CUDA_ROPE_INTERLEAVED, split = GGML_EXT_CUDA_ROPE_SPLIT_HALF;
    const shape shapes[] = {
        {"RMSNorm-Mul-RoPE 24 x 4096, matrices, interleaved", 24, 4096, inter, true, false, false},
        {"RMSNorm-Mul-RoPE 24 x 4096, matrices, split half", 24, 4096, split, true, false, false},
        {"RMSNorm-Mul-RoPE 24 x 4096, ggml's angles, interleaved", 24, 4096, inter, true, false, true},
        {"RMSNorm-Mul-RoPE 24 x 4096, ggml's angles, split half", 24, 4096, split, true, false, true},
        {"RMSNorm-Mul-RoPE-FP16 24 x 4096, matrices, interleaved", 24, 4096, inter, true, true, false},
        {"RoPE 24 x 4096, matrices, interleaved", 24, 4096, inter, false, false, false},
        {"RoPE 32 x 2048, ggml's angles, split half", 32, 2048, split, false, false, true},
        {"RoPE 1 x 65536, ggml's angles, split half", 1, 65536, split, false, false, true},
        {"RMSNorm-Mul-RoPE 24 x 16384, matrices, interleaved", 24, 16384, inter, true, false, false}};
    for (const shape & s : shapes) {
        run(s);
    }
}
