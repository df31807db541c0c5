#if !defined(_WIN32)

#    include "support/shared_library.h"

#    include <dlfcn.h>

namespace ggml_ext {

shared_library::~shared_library() {
    if (handle_ != nullptr) {
        dlclose(handle_);
    }
}

bool shared_library::load(const char * path) {
    return (handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL)) != nullptr;
}

bool shared_library::open_loaded(const char * path) {
    return (handle_ = dlopen(path, RTLD_NOW | RTLD_NOLOAD)) != nullptr;
}

void * shared_library::find(const char * name) const {
    return dlsym(handle_ != nullptr ? handle_ : RTLD_DEFAULT, name);
}

std::string loader_error() {
    const char * text = dlerror();
    return text != nullptr ? text : "no reason given";
}

image image_of(const void * address) {
    Dl_info info{};
    return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? image{info.dli_fname, info.dli_fbase} : image{};
}

} // namespace ggml_ext

#endif
