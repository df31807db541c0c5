#include "unary.h"

#include "loaded_function.h"

namespace cpu_ops {

namespace {

using name_function = const char * (*) (int32_t);

name_function find(const char * symbol) {
    return reinterpret_cast<name_function>(find_loaded(symbol));
}

} // namespace

const char * unary_name(const ggml_ext_node & node) {
    static const name_function name_of = find("ggml_unary_op_name");
    return name_of != nullptr ? name_of(param_i32(node, 0)) : "";
}

bool is_unary_of(const ggml_ext_node * node, const char * name, const ggml_ext_tensor & x) {
    return is_op(node, "UNARY") && source(*node, 0)->tensor == x.tensor && std::strcmp(unary_name(*node), name) == 0;
}

const char * glu_name(const ggml_ext_node & node) {
    static const name_function name_of = find("ggml_glu_op_name");
    return name_of != nullptr ? name_of(param_i32(node, 0)) : "";
}

} // namespace cpu_ops
