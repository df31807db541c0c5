// struct ggml_tensor, field by field: what public constructors and setters do must be what the mirror shows.

#include "abi/probes.h"

#include <cstring>

namespace ggml_ext::abi {

namespace {

constexpr size_t MAX_OVERHEAD = 1024; // of a tensor; a probe makes less than 20 of them
constexpr int    N_ARGS       = 9;    // the most that ggml_custom_4d takes

void no_kernel(ggml_tensor *, int, int, void *) {}

// Every byte of the struct counts: header, tensor and the next header follow each other without a gap.
bool probe_size(const functions & fn, std::string & why) {
    const size_t overhead = fn.ggml_tensor_overhead();
    if (!expect(overhead > sizeof(ggml_tensor) && overhead <= MAX_OVERHEAD,
                "ggml_tensor_overhead() is neither a struct of 336 bytes and a header nor close to it", why)) {
        return false;
    }
    probe_context ctx(fn);
    const char *  first  = reinterpret_cast<const char *>(ctx.new_f32(1));
    const char *  second = reinterpret_cast<const char *>(ctx.new_f32(1));
    return expect(static_cast<size_t>(second - first) == overhead,
                  "the distance of consecutive tensors is not ggml_tensor_overhead()", why) &&
           expect(overhead - static_cast<size_t>(first - ctx.begin()) == sizeof(ggml_tensor), "the size is not 336 bytes", why);
}

bool probe_types(const functions & fn, std::string & why) {
    return expect(std::strcmp(fn.ggml_type_name(TYPE_F32), "f32") == 0 && fn.ggml_type_size(TYPE_F32) == 4, "type 0 is not f32",
                  why) &&
           expect(std::strcmp(fn.ggml_type_name(TYPE_I8), "i8") == 0 && fn.ggml_type_size(TYPE_I8) == 1, "type 24 is not i8", why) &&
           expect(fn.ggml_blck_size(TYPE_F32) == 1, "the block size of f32 is not 1", why);
}

// A new tensor sets every field, over the pattern that lay there.
bool probe_new(const functions & fn, int32_t op_none, std::string & why) {
    probe_context       ctx(fn);
    const ggml_tensor & t = *fn.ggml_new_tensor_4d(ctx.get(), TYPE_I8, 3, 5, 7, 11);

    const int64_t ne[4]         = {3, 5, 7, 11};
    const size_t  nb[4]         = {1, 3, 15, 105};
    const int32_t op_params[16] = {};
    const char    name[64]      = {};
    bool          no_src        = true;
    for (const ggml_tensor * src : t.src) {
        no_src = no_src && src == nullptr;
    }
    return expect(t.type == TYPE_I8, "type", why) && expect(std::memcmp(t.ne, ne, sizeof(ne)) == 0, "ne", why) &&
           expect(std::memcmp(t.nb, nb, sizeof(nb)) == 0, "nb", why) && expect(t.op == op_none, "op of a new tensor", why) &&
           expect(std::memcmp(t.op_params, op_params, sizeof(op_params)) == 0, "op_params of a new tensor", why) &&
           expect(t.flags == 0, "flags of a new tensor", why) && expect(no_src, "src of a new tensor", why) &&
           expect(t.buffer == nullptr && t.view_src == nullptr && t.view_offs == 0, "view_src of a new tensor", why) &&
           expect(t.data == nullptr, "data of a new tensor", why) &&
           expect(std::memcmp(t.name, name, sizeof(name)) == 0, "name of a new tensor", why) &&
           expect(t.extra == nullptr, "extra of a new tensor", why) && expect(fn.ggml_nbytes(&t) == 3 * 5 * 7 * 11, "nbytes", why);
}

bool probe_setters(const functions & fn, std::string & why) {
    probe_context         ctx(fn);
    alignas(64) char      data[256];
    ggml_tensor &         t      = *ctx.new_f32(16);
    ggml_backend_buffer * buffer = fn.ggml_backend_cpu_buffer_from_ptr(data, sizeof(data));
    fn.ggml_backend_tensor_alloc(buffer, &t, data + 64);
    fn.ggml_set_name(&t, "ggml-ext probe");
    fn.ggml_set_input(&t);
    const int32_t input = t.flags;
    fn.ggml_set_output(&t);
    const int32_t both = t.flags;

    // the address of a view is that of its source, plus the offset
    const ggml_tensor & view  = *fn.ggml_view_1d(ctx.get(), &t, 8, 12);
    const ggml_tensor & inner = *fn.ggml_view_1d(ctx.get(), const_cast<ggml_tensor *>(&view), 4, 8);
    const bool          ok =
        expect(t.buffer == buffer, "buffer", why) && expect(t.data == data + 64, "data", why) &&
        expect(std::strcmp(t.name, "ggml-ext probe") == 0, "name", why) &&
        expect(input == FLAG_INPUT && both == (FLAG_INPUT | FLAG_OUTPUT), "flags", why) &&
        expect(view.view_src == &t && view.view_offs == 12 && view.src[0] == &t, "view_src of a view", why) &&
        expect(view.data == data + 76, "data of a view", why) &&
        expect(inner.view_src == &t && inner.view_offs == 20 && inner.src[0] == &view, "view_src of a view of a view", why);
    fn.ggml_backend_buffer_free(buffer);
    return ok;
}

// Operations as public constructors make them have the ids that their names gave; all sources are where they should be.
bool probe_nodes(const ggml & g, std::string & why) {
    const functions & fn = g.fn;
    probe_context     ctx(fn);
    ggml_tensor *     a   = ctx.new_f32(4);
    ggml_tensor *     b   = ctx.new_f32(4);
    ggml_tensor *     add = fn.ggml_add(ctx.get(), a, b);
    ggml_tensor *     mm  = fn.ggml_mul_mat(ctx.get(), a, b);
    ggml_tensor *     v   = fn.ggml_view_1d(ctx.get(), a, 4, 0);

    ggml_tensor * args[N_ARGS];
    for (int i = 0; i < N_ARGS; i++) {
        args[i] = i % 2 == 0 ? a : b;
    }
    int           user_data;
    ggml_tensor * custom = fn.ggml_custom_4d(ctx.get(), TYPE_F32, 4, 1, 1, 1, args, N_ARGS, no_kernel, 3, &user_data);

    // as ggml-ext's own nodes carry their callback
    struct {
        void (*fun)(ggml_tensor *, int, int, void *);
        int32_t n_tasks;
        void *  user_data;
    } params;
    std::memcpy(&params, custom->op_params, sizeof(params));

    ggml_cgraph * graph = fn.ggml_new_graph_custom(ctx.get(), 8, false);
    fn.ggml_build_forward_expand(graph, add);

    return expect(add->op == g.op.add, "ggml_add does not make the operation named ADD", why) &&
           expect(mm->op == g.op.mul_mat, "ggml_mul_mat does not make the operation named MUL_MAT", why) &&
           expect(v->op == g.op.view, "ggml_view_1d does not make the operation named VIEW", why) &&
           expect(custom->op == g.op.custom, "ggml_custom_4d does not make the operation named CUSTOM", why) &&
           expect(add->src[0] == a && add->src[1] == b && add->src[2] == nullptr, "src of ADD", why) &&
           expect(std::memcmp(custom->src, args, sizeof(args)) == 0 && custom->src[N_ARGS] == nullptr, "src of CUSTOM", why) &&
           expect(params.fun == no_kernel && params.n_tasks == 3 && params.user_data == &user_data, "op_params of CUSTOM", why) &&
           expect(add->flags == FLAG_COMPUTE && a->flags == 0, "a node of a graph is not marked as computed", why);
}

} // namespace

bool probe_tensor(const ggml & g, std::string & why) {
    return probe_size(g.fn, why) && probe_types(g.fn, why) && probe_new(g.fn, g.op.none, why) && probe_setters(g.fn, why) &&
           probe_nodes(g, why);
}

} // namespace ggml_ext::abi
