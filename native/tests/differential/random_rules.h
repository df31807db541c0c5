#pragma once
// Random kernels for one device: fusion rules over any operations, overrides of single operations, delays, in both executors' forms.

#include "support/stock_ggml.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ggml_ext::test {

struct rule_counts {
    uint64_t n_matches = 0, n_refused = 0, n_failed = 0, n_delays = 0, n_delays_refused = 0;
};

class random_rules {
public:
    // `worker`: a backend without the layer; kernels compute their nodes on it
    random_rules(uint64_t seed, ggml_backend_device * device, ggml_backend * worker);
    ~random_rules(); // after the backends that planned with them are freed

    random_rules(const random_rules &)             = delete;
    random_rules & operator=(const random_rules &) = delete;

    rule_counts counts() const;

    struct rule;

private:
    std::vector<std::unique_ptr<rule>> rules_;
};

// the steps of a backend's plans, for messages of failed tests
std::string describe_plans(ggml_backend * backend);

} // namespace ggml_ext::test
