#pragma once
// Shared libraries of the process, opened for as long as the object lives, and what the system's loader says of them. Paths are UTF-8.

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace ggml_ext {

class shared_library {
public:
    shared_library() = default;
    shared_library(shared_library && other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    shared_library & operator=(shared_library && other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~shared_library();

    // Loads it, and first what it depends on; false: loader_error() says why not.
    bool load(const char * path);
    // only what the process has loaded already
    bool open_loaded(const char * path);
    // The first of these that is loaded already, else the first that can be loaded.
    bool open(std::initializer_list<const char *> names) {
        const auto any = [&](bool (shared_library::*way)(const char *)) {
            return std::any_of(names.begin(), names.end(), [&](const char * name) { return (this->*way)(name); });
        };
        return any(&shared_library::open_loaded) || any(&shared_library::load);
    }
    // It stays loaded for the life of the process.
    void keep() { handle_ = nullptr; }

    // NULL where there is none. Without an open library: what is visible in the process.
    void * find(const char * name) const;

    template <typename Function> void find(const char * name, Function *& out) const { out = reinterpret_cast<Function *>(find(name)); }

private:
    void * handle_ = nullptr;
};

// Why the last library that this thread asked for is not open.
std::string loader_error();

// The image that holds the address.
struct image {
    std::string  file; // "" where there is none
    const void * base = nullptr;
};

image image_of(const void * address);

} // namespace ggml_ext
