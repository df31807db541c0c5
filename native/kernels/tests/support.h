#pragma once

// What the families' tests share: seeded inputs, threads, padded matrices with guard values.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <vector>

namespace test {

inline std::vector<float> uniform(std::size_t n, unsigned seed, float low = -1.0f, float high = 1.0f) {
    std::mt19937                          random(seed);
    std::uniform_real_distribution<float> range(low, high);
    std::vector<float>                    v(n);
    for (float & f : v) {
        f = range(random);
    }
    return v;
}

inline std::vector<int8_t> bytes(std::size_t n, unsigned seed, int low = -128, int high = 127) {
    std::mt19937                       random(seed);
    std::uniform_int_distribution<int> range(low, high);
    std::vector<int8_t>                v(n);
    for (int8_t & b : v) {
        b = static_cast<int8_t>(range(random));
    }
    return v;
}

// Normally distributed rows of n, each scaled by its largest magnitude to 127, as quantisers leave them.
inline std::vector<int8_t> quantized_rows(std::size_t rows, std::size_t n, unsigned seed) {
    std::mt19937                    random(seed);
    std::normal_distribution<float> normal;
    std::vector<float>              row(n);
    std::vector<int8_t>             v;
    v.reserve(rows * n);
    for (std::size_t r = 0; r < rows; r++) {
        float largest = 0;
        for (float & f : row) {
            f       = normal(random);
            largest = std::fmax(largest, std::fabs(f));
        }
        for (float f : row) {
            v.push_back(static_cast<int8_t>(std::lround(f / largest * 127)));
        }
    }
    return v;
}

// The same pointer a byte further, where no float may lie.
template <typename T> T * off_by_one(T * p) {
    return reinterpret_cast<T *>(reinterpret_cast<std::uintptr_t>(p) + 1);
}

// Calls f(ith) on nth threads and returns the largest status.
inline int on_threads(int nth, const std::function<int(int)> & f) {
    std::vector<int>         status(static_cast<std::size_t>(nth));
    std::vector<std::thread> threads;
    for (int i = 1; i < nth; i++) {
        threads.emplace_back([&, i] { status[static_cast<std::size_t>(i)] = f(i); });
    }
    status[0] = f(0);
    for (std::thread & t : threads) {
        t.join();
    }
    int worst = 0;
    for (int s : status) {
        worst = s > worst ? s : worst;
    }
    return worst;
}

constexpr float GUARD = 12345.0f;

// A rows x columns output whose rows are pad floats apart; what lies between and after must stay GUARD.
struct padded {
    int64_t            rows, columns, stride;
    std::vector<float> data;

    padded(int64_t rows_, int64_t columns_, int64_t pad)
        : rows(rows_), columns(columns_), stride(columns_ + pad),
          data(static_cast<std::size_t>(rows_ * (columns_ + pad) + 64), GUARD) {}

    float operator()(int64_t r, int64_t c) const { return data[static_cast<std::size_t>(r * stride + c)]; }

    std::size_t stride_bytes() const { return static_cast<std::size_t>(stride) * sizeof(float); }

    bool guards_intact() const {
        for (std::size_t i = 0; i < data.size(); i++) {
            const int64_t r = static_cast<int64_t>(i) / stride, c = static_cast<int64_t>(i) % stride;
            if ((r >= rows || c >= columns) && data[i] != GUARD) {
                return false;
            }
        }
        return true;
    }
};

struct error {
    double absolute = 0, relative = 0;

    void add(double got, double expected) {
        const double d = std::fabs(got - expected);
        absolute       = std::isnan(d) || d > absolute ? d : absolute;
        if (expected != 0) {
            const double r = d / std::fabs(expected);
            relative       = std::isnan(r) || r > relative ? r : relative;
        }
    }
};

} // namespace test
