#include "unary.h"

#include <dlfcn.h>
#include <link.h>

namespace cpu_ops {

namespace {

using name_function = const char * (*) (int32_t);

constexpr char SYMBOL[] = "ggml_unary_op_name";

// ggml may have been loaded with its symbols hidden from other libraries: each loaded library is asked.
int ask(dl_phdr_info * library, size_t /* size */, void * found) {
    void * handle = dlopen(library->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
        return 0;
    }
    void * symbol = dlsym(handle, SYMBOL);
    dlclose(handle);
    *static_cast<name_function *>(found) = reinterpret_cast<name_function>(symbol);
    return symbol != nullptr ? 1 : 0;
}

name_function find() {
    name_function found = nullptr;
    dl_iterate_phdr(ask, &found);
    return found;
}

} // namespace

const char * unary_name(const ggml_ext_node & node) {
    static const name_function name_of = find();
    return name_of != nullptr ? name_of(param_i32(node, 0)) : "";
}

} // namespace cpu_ops
