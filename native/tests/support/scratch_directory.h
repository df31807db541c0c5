#pragma once

#include <filesystem>
#include <random>
#include <string>

namespace ggml_ext::test {

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
