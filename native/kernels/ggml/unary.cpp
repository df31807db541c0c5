#include "unary.h"

#include <dlfcn.h>
#include <link.h>

namespace cpu_ops {

namespace {

using name_function = const char * (*) (int32_t);

struct question {
    const char *  symbol;
    name_function answer;
};

// ggml may have been loaded with its symbols hidden from other libraries: each loaded library is asked.
int ask(dl_phdr_info * library, size_t /* size */, void * asked) {
    void * handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return 0;
    }
    auto & q      = *static_cast<question *>(asked);
    void * symbol = dlsym(handle, q.symbol);
    dlclose(handle);
    q.answer = reinterpret_cast<name_function>(symbol);
    return symbol != nullptr ? 1 : 0;
}

name_function find(const char * symbol) {
    question q{symbol, nullptr};
    dl_iterate_phdr(ask, &q);
    return q.answer;
}

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
