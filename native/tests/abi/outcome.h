#pragma once
// ggml-ext given a library to load: what it answers.

#include "abi/ggml.h"
#include "support/stock_ggml.h"

#include <filesystem>
#include <random>
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

// An empty folder for as long as it lives.
struct scratch_directory {
    scratch_directory() { std::filesystem::create_directory(path); }
    ~scratch_directory() { std::filesystem::remove_all(path); }
    scratch_directory(const scratch_directory &)             = delete;
    scratch_directory & operator=(const scratch_directory &) = delete;

    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("ggml-ext-" + std::to_string(std::random_device()()) + std::to_string(std::random_device()()));
};

} // namespace ggml_ext::test
