// Tensors of more than 2^31 elements: rows at both ends and at the 2^31st element against double precision.

#include "device.h"

#include <algorithm>

namespace {

constexpr int64_t LARGE = int64_t{1} << 31;

bool has_memory(int64_t bytes) {
    std::size_t free = 0, total = 0;
    REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
    if (free > static_cast<std::size_t>(bytes) + (std::size_t{1} << 30)) {
        return true;
    }
    MESSAGE("skipped: it needs " << (bytes >> 30) << " GiB of the GPU's memory");
    return false;
}

template <typename T> void write_row(const test::device<T> & memory, int64_t at, const std::vector<T> & row) {
    REQUIRE(cudaMemcpy(memory.data() + at, row.data(), row.size() * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
}

template <typename T> std::vector<T> read_row(const test::device<T> & memory, int64_t at, int64_t n) {
    std::vector<T> row(static_cast<std::size_t>(n));
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    REQUIRE(cudaMemcpy(row.data(), memory.data() + at, row.size() * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return row;
}

} // namespace

TEST_CASE("ROPE-1: more than 2^31 elements, in place, by the fast and by the general kernel") {
    for (const int64_t d : {128, 130}) {
        const int64_t L = LARGE / d + 3;
        if (!has_memory(L * d * 4)) {
            return;
        }
        const test::device<float> x(L * d), pe(test::uniform(d * 2, 2));
        const std::vector<float>  m    = test::uniform(d * 2, 2);
        ggml_ext_cuda_rope_args   args = {};
        args.d_head = args.d_rot = d;
        args.n_head = args.N = 1;
        args.L               = L;
        args.x               = x.data();
        args.dst             = x.data();
        args.x_nb1 = args.x_nb2 = args.x_nb3 = args.dst_nb1 = args.dst_nb2 = args.dst_nb3 = static_cast<std::size_t>(d) * 4;
        args.pe                                                                           = pe.data();
        args.pe_pair                                                                      = 16; // the same for all positions
        args.scale                                                                        = 1;
        const std::vector<int64_t> rows                                                   = {0, L / 2 + 1, L - 1};
        for (const int64_t row : rows) {
            write_row(x, row * d, test::uniform(d, static_cast<unsigned>(row % 1000)));
        }
        REQUIRE_MESSAGE(ggml_ext_cuda_rope(&args, nullptr) == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());
        for (const int64_t row : rows) {
            CAPTURE(row);
            const std::vector<float> before = test::uniform(d, static_cast<unsigned>(row % 1000)), y = read_row(x, row * d, d);
            double                   worst = 0;
            for (std::size_t i = 0; i < y.size(); i += 2) {
                const double a = before[i], b = before[i + 1];
                worst = std::max({worst, std::fabs(y[i] - (m[2 * i] * a + m[2 * i + 1] * b)),
                                  std::fabs(y[i + 1] - (m[2 * i + 2] * a + m[2 * i + 3] * b))});
            }
            CHECK(worst <= 1e-6);
        }
    }
}

TEST_CASE("I8-2: more than 2^31 elements") {
    const int64_t K = 256, M = LARGE / K + 1, padded = (M + 3) / 4 * 4;
    if (!has_memory(M * K * 5)) {
        return;
    }
    const test::device<float>      x(M * K), scale(M);
    const test::device<int8_t>     q(padded * K);
    ggml_ext_cuda_quantize_i8_args args = {};
    args.M                              = M;
    args.K                              = K;
    args.group                          = 1;
    args.padded_rows                    = padded;
    args.x                              = x.data();
    args.x_stride                       = static_cast<std::size_t>(K) * 4;
    args.q                              = q.data();
    args.q_stride                       = static_cast<std::size_t>(K);
    args.scale                          = scale.data();
    const std::vector<int64_t> rows     = {0, M / 2, M - 1};
    for (const int64_t row : rows) {
        write_row(x, row * K, test::uniform(K, static_cast<unsigned>(row % 1000)));
    }
    REQUIRE_MESSAGE(ggml_ext_cuda_quantize_i8(&args, nullptr, 0, nullptr) == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());
    for (const int64_t row : rows) {
        CAPTURE(row);
        const std::vector<float>  from    = test::uniform(K, static_cast<unsigned>(row % 1000));
        const std::vector<int8_t> to      = read_row(q, row * K, K);
        double                    largest = 0, worst = 0;
        for (const float v : from) {
            largest = std::max(largest, std::fabs(static_cast<double>(v)));
        }
        for (std::size_t i = 0; i < from.size(); i++) {
            worst = std::max(worst, std::fabs(to[i] - from[i] * 127 / largest));
        }
        CHECK(worst <= 0.5001);
        CHECK(read_row(scale, row, 1)[0] == doctest::Approx(largest / 127).epsilon(1e-6));
    }
    CHECK(read_row(q, M * K, (padded - M) * K) == std::vector<int8_t>(static_cast<std::size_t>((padded - M) * K)));
}

TEST_CASE("I8-1: more than 2^31 sums, rescaled in place") {
    const int64_t N = 65536, M = LARGE / N + 1;
    if (!has_memory(M * N * 4)) {
        return;
    }
    const test::device<int32_t>   sum(M * N);
    const test::device<float>     x_scale(test::uniform(M, 1)), w_scale(test::uniform(N, 2));
    ggml_ext_cuda_rescale_i8_args args = {};
    args.M                             = M;
    args.N                             = N;
    args.sum                           = sum.data();
    args.dst                           = reinterpret_cast<float *>(sum.data());
    args.sum_stride = args.dst_stride = static_cast<std::size_t>(N) * 4;
    args.x_scale                      = x_scale.data();
    args.x_scales                     = M;
    args.w_scale                      = w_scale.data();
    args.w_scales                     = N;
    std::vector<int32_t> values;
    for (int32_t n = 0; n < N; n++) {
        values.push_back(n * 31 - 1000000);
    }
    const std::vector<int64_t> rows = {0, M / 2, M - 1};
    for (const int64_t row : rows) {
        write_row(sum, row * N, values);
    }
    REQUIRE_MESSAGE(ggml_ext_cuda_rescale_i8(&args, nullptr) == GGML_EXT_CUDA_OK, ggml_ext_cuda_last_error());
    const std::vector<float> xs = test::uniform(M, 1), ws = test::uniform(N, 2);
    for (const int64_t row : rows) {
        CAPTURE(row);
        const std::vector<int32_t> bits  = read_row(sum, row * N, N);
        double                     worst = 0;
        for (std::size_t n = 0; n < bits.size(); n++) {
            float y;
            std::memcpy(&y, &bits[n], sizeof(y));
            const double expected = static_cast<double>(values[n]) * xs[static_cast<std::size_t>(row)] * ws[n];
            worst                 = std::max(worst, std::fabs(y - expected) / (1 + std::fabs(expected)));
        }
        CHECK(worst <= 1e-6);
    }
}
