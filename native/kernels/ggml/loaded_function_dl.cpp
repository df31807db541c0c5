#if !defined(_WIN32)

#    include "loaded_function.h"

#    include <dlfcn.h>

#    include <cstddef>
#    include <cstdint>

#    if defined(__APPLE__)
#        include <mach-o/dyld.h>
#    else
#        include <link.h>
#    endif

namespace cpu_ops {

namespace {

void * find_in(const char * library, const char * symbol) {
    void * handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return nullptr;
    }
    void * found = dlsym(handle, symbol);
    dlclose(handle);
    return found;
}

} // namespace

#    if defined(__APPLE__)

void * find_loaded(const char * symbol) {
    void * found = nullptr;
    for (uint32_t i = 0; i < _dyld_image_count() && found == nullptr; ++i) {
        found = find_in(_dyld_get_image_name(i), symbol);
    }
    return found;
}

#    else

namespace {

struct question {
    const char * symbol;
    void *       answer;
};

int ask(dl_phdr_info * library, size_t /* size */, void * asked) {
    auto & q = *static_cast<question *>(asked);
    q.answer = find_in(library->dlpi_name, q.symbol);
    return q.answer != nullptr ? 1 : 0;
}

} // namespace

void * find_loaded(const char * symbol) {
    question q{symbol, nullptr};
    dl_iterate_phdr(ask, &q);
    return q.answer;
}

#    endif

} // namespace cpu_ops

#endif
