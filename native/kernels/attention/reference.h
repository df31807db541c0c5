#pragma once

// The definition in double precision, one query at a time.

#include <cmath>
#include <cstdint>
#include <vector>

namespace reference {

// q of one head [d_k], k [keys][d_k], v [keys][d_v], bias [keys] (slope * mask; may be empty) -> [d_v]
inline std::vector<double> attention(const std::vector<double> &              q,
                                     const std::vector<std::vector<double>> & k,
                                     const std::vector<std::vector<double>> & v,
                                     double                                   scale,
                                     const std::vector<double> &              bias) {
    std::vector<double> scores;
    double              most = -INFINITY, total = 0;
    for (std::size_t j = 0; j < k.size(); j++) {
        double s = 0;
        for (std::size_t d = 0; d < q.size(); d++) {
            s += q[d] * k[j][d];
        }
        scores.push_back(s * scale + (bias.empty() ? 0 : bias[j]));
        most = std::fmax(most, scores.back());
    }
    std::vector<double> out(v[0].size(), 0.0);
    bool                masked = true;
    for (std::size_t j = 0; j < k.size(); j++) {
        masked = masked && !bias.empty() && bias[j] == -INFINITY;
    }
    if (masked) {
        return out;
    }
    for (std::size_t j = 0; j < k.size(); j++) {
        const double e = std::exp(scores[j] - most);
        total += e;
        for (std::size_t d = 0; e != 0 && d < out.size(); d++) {
            out[d] += e * v[j][d];
        }
    }
    for (double & o : out) {
        o /= total;
    }
    return out;
}

// ALiBi's slope of a head, by the paper's formula for a number of heads that need be no power of two.
inline double alibi_slope(double max_bias, int64_t heads, int64_t head) {
    const double power = std::exp2(std::floor(std::log2(static_cast<double>(heads))));
    const double h     = static_cast<double>(head);
    return h < power ? std::exp2(-max_bias / power * (h + 1)) : std::exp2(-max_bias / 2 / power * (2 * (h - power) + 1));
}

// IEEE half precision, for values and their bits.
inline double half_value(uint16_t bits) {
    const int    exponent = bits >> 10 & 31, fraction = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;
    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

} // namespace reference
