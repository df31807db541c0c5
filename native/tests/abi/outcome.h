#pragma once
// ggml-ext given a library to load: what it answers.

#include "abi/ggml.h"
#include "support/stock_ggml.h"

#include <string>

namespace ggml_ext::test {

struct outcome {
    int         status;
    std::string error;
    abi::ggml   g;
};

inline outcome load(const char * base_path, const char * ggml_path) {
    outcome                    o;
    const ggml_ext_load_params params = {sizeof(params), base_path, ggml_path};
    o.status                          = abi::load(params, o.g, o.error);
    return o;
}

inline bool contains(const std::string & text, const std::string & part) {
    return text.find(part) != std::string::npos;
}

} // namespace ggml_ext::test
