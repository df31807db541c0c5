#if !defined(_WIN32)

#    include "loaded_function.h"

#    include <dlfcn.h>

#    include <cstddef>
#    include <cstdint>

#    if defined(__APPLE__)
#        include <mach-o/dyld.h>
#    else
#        include <link.h>

#        include <string>
#        include <vector>
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

int add_name(dl_phdr_info * library, size_t /* size */, void * names) {
    static_cast<std::vector<std::string> *>(names)->emplace_back(library->dlpi_name);
    return 0;
}

} // namespace

// Asked after the walk: it holds a lock that dlopen takes the other way round.
void * find_loaded(const char * symbol) {
    std::vector<std::string> names;
    dl_iterate_phdr(add_name, &names);
    void * found = nullptr;
    for (auto name = names.begin(); name != names.end() && found == nullptr; ++name) {
        found = find_in(name->c_str(), symbol);
    }
    return found;
}

#    endif

} // namespace cpu_ops

#endif
