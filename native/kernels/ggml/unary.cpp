#include "unary.h"

#include <dlfcn.h>

#if defined(__APPLE__)
#    include <mach-o/dyld.h>
#else
#    include <link.h>
#endif

namespace cpu_ops {

namespace {

using name_function = const char * (*) (int32_t);

// ggml may have been loaded with its symbols hidden from other libraries: each loaded library is asked.
void * find_in(const char * library, const char * symbol) {
    void * handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return nullptr;
    }
    void * found = dlsym(handle, symbol);
    dlclose(handle);
    return found;
}

#if defined(__APPLE__)

name_function find(const char * symbol) {
    void * found = nullptr;
    for (uint32_t i = 0; i < _dyld_image_count() && found == nullptr; ++i) {
        found = find_in(_dyld_get_image_name(i), symbol);
    }
    return reinterpret_cast<name_function>(found);
}

#else

struct question {
    const char * symbol;
    void *       answer;
};

int ask(dl_phdr_info * library, size_t /* size */, void * asked) {
    auto & q = *static_cast<question *>(asked);
    q.answer = find_in(library->dlpi_name, q.symbol);
    return q.answer != nullptr ? 1 : 0;
}

name_function find(const char * symbol) {
    question q{symbol, nullptr};
    dl_iterate_phdr(ask, &q);
    return reinterpret_cast<name_function>(q.answer);
}

#endif

} // namespace

const char * unary_name(const ggml_ext_node & node) {
    static const name_function name_of = find("ggml_unary_op_name");
    return name_of != nullptr ? name_of(param_i32(node, 0)) : "";
}

const char * glu_name(const ggml_ext_node & node) {
    static const name_function name_of = find("ggml_glu_op_name");
    return name_of != nullptr ? name_of(param_i32(node, 0)) : "";
}

} // namespace cpu_ops
