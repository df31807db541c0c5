#include "registry/op_create.h"

#include "registry/describe.h"
#include "support/status.h"

#include <cstring>

namespace ggml_ext {

namespace {

// GGML_TYPE_* that every ggml from 0.20 on has; ggml does not check the value that it indexes its table with
constexpr int32_t N_TYPES = 40;

// Shape and type of an output, before ggml sees them: its own checks end the process.
int check_output(const abi::ggml & g, const op_registration & op, const ggml_ext_output & out, size_t & nbytes) {
    const char * type_name = out.type >= 0 && out.type < N_TYPES ? g.fn.ggml_type_name(out.type) : nullptr;
    if (type_name == nullptr || g.fn.ggml_type_size(out.type) == 0) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: infer gave type %d, which is no ggml type", op.name.c_str(), out.type);
    }
    const int64_t block = g.fn.ggml_blck_size(out.type);
    size_t        rows  = 1;
    for (int i = 0; i < GGML_EXT_MAX_DIMS; ++i) {
        if (out.ne[i] <= 0) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: infer gave ne[%d] = %lld, expected at least 1", op.name.c_str(), i,
                        static_cast<long long>(out.ne[i]));
        }
        if (i > 0 && __builtin_mul_overflow(rows, static_cast<size_t>(out.ne[i]), &rows)) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: infer gave more rows than memory can hold", op.name.c_str());
        }
    }
    if (out.ne[0] % block != 0) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: infer gave ne[0] = %lld, expected a multiple of %lld for type %s",
                    op.name.c_str(), static_cast<long long>(out.ne[0]), static_cast<long long>(block), type_name);
    }
    size_t row_size = 0;
    if (__builtin_mul_overflow(static_cast<size_t>(out.ne[0] / block), g.fn.ggml_type_size(out.type), &row_size) ||
        __builtin_mul_overflow(row_size, rows, &nbytes) || nbytes > SIZE_MAX / 64) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: infer gave an output larger than memory can hold", op.name.c_str());
    }
    return GGML_EXT_STATUS_SUCCESS;
}

int check_room(const abi::ggml & g, ggml_context * ctx, const op_registration & op, size_t nbytes) {
    constexpr size_t padding = 64; // of the object and of the data
    const size_t     needed  = g.fn.ggml_tensor_overhead() + padding + (g.fn.ggml_get_no_alloc(ctx) ? 0 : nbytes);
    const size_t     free    = g.fn.ggml_get_mem_size(ctx) - g.fn.ggml_used_mem(ctx);
    if (free < needed) {
        return fail(GGML_EXT_STATUS_NO_MEMORY, "operator %s: the context has %zu bytes left, the node needs %zu", op.name.c_str(), free, needed);
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

int op_create(const abi::ggml & g, ggml_context * ctx, const op_use & use, int32_t n_src, ggml_tensor * const * src,
              const void * attrs, size_t attrs_size, ggml_tensor ** out) {
    const op_registration & op = *use.op;
    if (n_src < 0 || n_src > GGML_EXT_MAX_SRC) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: %d sources, expected 0 to %d", op.name.c_str(), n_src, GGML_EXT_MAX_SRC);
    }
    if (attrs_size != op.attrs_size || (attrs_size > 0 && attrs == nullptr)) {
        return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: %zu bytes of attributes%s, expected %zu", op.name.c_str(), attrs_size,
                    attrs == nullptr && attrs_size > 0 ? " at NULL" : "", op.attrs_size);
    }
    ggml_ext_tensor         infos[GGML_EXT_MAX_SRC];
    const ggml_ext_tensor * pointers[GGML_EXT_MAX_SRC] = {};
    for (int i = 0; i < n_src; ++i) {
        if (src == nullptr || src[i] == nullptr) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "operator %s: source %d is NULL", op.name.c_str(), i);
        }
        describe_tensor(g, src[i], infos[i]);
        pointers[i] = &infos[i];
    }

    ggml_ext_output output{sizeof(output), TYPE_F32, {}};
    set_last_error("");
    const int inferred = op.infer(n_src, pointers, attrs, &output, use.data->user_data);
    if (inferred != GGML_EXT_STATUS_SUCCESS) {
        const std::string reason = last_error();
        const bool        known  = inferred > GGML_EXT_STATUS_SUCCESS && inferred <= GGML_EXT_STATUS_NOT_LOADED;
        return fail(known ? inferred : static_cast<int>(GGML_EXT_STATUS_FAILED), "operator %s: infer refused: %s", op.name.c_str(),
                    reason.empty() ? format("it returned %d (%s)", inferred, ggml_ext_status_name(inferred)).c_str() : reason.c_str());
    }
    size_t nbytes = 0;
    if (const int status = check_output(g, op, output, nbytes); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    if (const int status = check_room(g, ctx, op, nbytes); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }

    ggml_tensor * node = g.fn.ggml_new_tensor_4d(ctx, output.type, output.ne[0], output.ne[1], output.ne[2], output.ne[3]);
    node->op           = g.op.custom;
    for (int i = 0; i < n_src; ++i) {
        node->src[i] = src[i];
    }
    set_custom_params(*node, marker(), 1, &op);
    if (attrs_size > 0) {
        std::memcpy(reinterpret_cast<char *>(node->op_params) + ATTRS_OFFSET, attrs, attrs_size);
    }
    *out = node;
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace ggml_ext
