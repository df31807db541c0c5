#pragma once
// A shared library of the process, opened for as long as the object lives.

#include <dlfcn.h>

#include <initializer_list>
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
    ~shared_library() {
        if (handle_ != nullptr) {
            dlclose(handle_);
        }
    }

    // The first of these that is loaded already, else the first that can be loaded.
    bool open(std::initializer_list<const char *> names) {
        for (const int mode : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW | RTLD_LOCAL}) {
            for (const char * name : names) {
                if (handle_ == nullptr) {
                    handle_ = dlopen(name, mode);
                }
            }
        }
        return handle_ != nullptr;
    }

    // NULL where there is none
    template <typename Function> void find(const char * name, Function *& out) const {
        out = reinterpret_cast<Function *>(dlsym(handle_, name));
    }

private:
    void * handle_ = nullptr;
};

} // namespace ggml_ext
