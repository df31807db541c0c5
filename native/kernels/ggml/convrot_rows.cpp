// ROT-1: what makes rows that sd.quantize_i8_convrot.v1 takes over, row by row, so that the rows in F32 stay in the cache:
//   SCALE;  UNARY(GELU_ERF);  GLU(SWIGLU), packed, swapped or separate;  UNARY(SILU or SIGMOID) -> MUL
//   NORM or RMS_NORM -> MUL(weight) [-> ADD(shift)]
//   NORM or RMS_NORM -> MUL(weight) -> MUL(modulation) -> ADD (to the weighted rows) -> ADD(shift)
// Only where the rows do not fit into the cache of a core: there alone it pays.

#include "convrot.h"
#include "ggml-ext-kernels/make_row.h"
#include "ggml-ext-kernels/quantize_i8.h"
#include "registrations.h"
#include "threads.h"

namespace cpu_ops {

namespace {

constexpr int64_t LEAST_BYTES = int64_t{2} << 20;
constexpr int     MOST_NODES  = 6;

// The nodes of a match, in order; NULL behind the graph's last.
using nodes_of_match = const ggml_ext_node * const *;

struct operand {
    const ggml_ext_tensor * t     = nullptr;
    size_t                  begin = 0; // bytes into each row
};

struct row_maker {
    ggml_ext_cpu_row args{};
    operand          x, y, weight, modulation, shift;
    int              nodes = 0; // without the quantiser
};

bool reads(const ggml_ext_node * node, int i, const ggml_ext_node * before) {
    return node != nullptr && before != nullptr && source(*node, i) != nullptr && source(*node, i)->tensor == before->dst->tensor;
}

// The other source of a node of this operation that reads `before`; NULL where there is none.
const ggml_ext_tensor * other(const ggml_ext_node * node, const char * op, const ggml_ext_node * before) {
    if (!is_op(node, op)) {
        return nullptr;
    }
    return reads(node, 0, before) ? source(*node, 1) : reads(node, 1, before) ? source(*node, 0)
                                                                              : nullptr;
}

// The read_ functions give the number of nodes that make the rows; 0 with the reason where they are none of these.

int read_norm(nodes_of_match at, row_maker & out) {
    out.args.kind = is_op(at[0], "NORM") ? GGML_EXT_CPU_ROW_NORM : GGML_EXT_CPU_ROW_RMS_NORM;
    out.args.eps  = param_f32(*at[0], 0);
    out.x.t       = source(*at[0], 0);
    out.weight.t  = other(at[1], "MUL", at[0]);
    if (out.weight.t == nullptr || !(out.args.eps >= 0)) {
        return refuse("no norm -> MUL, or eps is %g", static_cast<double>(out.args.eps));
    }
    out.shift.t = other(at[2], "ADD", at[1]);
    if (out.shift.t != nullptr) {
        return 3;
    }
    out.modulation.t = other(at[2], "MUL", at[1]);
    if (out.modulation.t == nullptr) {
        return 2;
    }
    out.shift.t = other(at[4], "ADD", at[3]);
    if (out.shift.t == nullptr || other(at[3], "ADD", at[1]) == nullptr || other(at[3], "ADD", at[2]) == nullptr) {
        return refuse("no MUL(modulation) -> ADD -> ADD(shift) follows");
    }
    return 5;
}

int read_unary(nodes_of_match at, row_maker & out) {
    out.x.t = source(*at[0], 0);
    if (is_function(*at[0], "GELU_ERF")) {
        out.args.kind = GGML_EXT_CPU_ROW_GELU_ERF;
        return 1;
    }
    const bool silu = is_function(*at[0], "SILU");
    out.args.kind   = silu ? GGML_EXT_CPU_ROW_SILU_MUL : GGML_EXT_CPU_ROW_SIGMOID_MUL;
    out.y.t         = other(at[1], "MUL", at[0]);
    if ((!silu && !is_function(*at[0], "SIGMOID")) || out.y.t == nullptr) {
        return refuse("no GELU_ERF, and no SILU or SIGMOID -> MUL: %s", at[0]->function);
    }
    return 2;
}

int read_glu(nodes_of_match at, row_maker & out) {
    if (!is_function(*at[0], "SWIGLU")) {
        return refuse("the gate is %s, not SWIGLU", at[0]->function);
    }
    out.args.kind = GGML_EXT_CPU_ROW_SILU_MUL;
    out.x.t       = source(*at[0], 0);
    out.y.t       = source(*at[0], 1);
    if (out.y.t == nullptr) { // both are halves of one row
        const size_t half    = static_cast<size_t>(at[0]->dst->ne[0]) * sizeof(float);
        const bool   swapped = param_i32(*at[0], 1) != 0;
        out.y                = {out.x.t, swapped ? 0 : half};
        out.x.begin          = swapped ? half : 0;
    }
    return 1;
}

int read_scale(nodes_of_match at, row_maker & out) {
    out.args.kind   = GGML_EXT_CPU_ROW_SCALE;
    out.x.t         = source(*at[0], 0);
    out.args.factor = param_f32(*at[0], 0);
    out.args.offset = param_f32(*at[0], 1);
    return 1;
}

// Whether each row of `out` has one of the operand's, its own or one that a whole dimension shares.
bool serves(const operand & o, const ggml_ext_tensor & out, bool halves) {
    if (o.t == nullptr) {
        return true;
    }
    bool ok = is_f32(o.t) && dense_rows(*o.t) && o.t->ne[0] == out.ne[0] * (halves ? 2 : 1);
    for (int d = 1; d < GGML_EXT_MAX_DIMS; ++d) {
        ok = ok && (o.t->ne[d] == 1 || o.t->ne[d] == out.ne[d]);
    }
    return ok;
}

bool is_within(const operand & o, nodes_of_match at, int nodes) {
    for (int i = 0; o.t != nullptr && i < nodes; ++i) {
        if (o.t->tensor == at[i]->dst->tensor) {
            return true;
        }
    }
    return false;
}

bool read(nodes_of_match at, row_maker & out) {
    out.nodes = is_op(at[0], "SCALE")   ? read_scale(at, out)
                : is_op(at[0], "UNARY") ? read_unary(at, out)
                : is_op(at[0], "GLU")   ? read_glu(at, out)
                                        : read_norm(at, out);
    if (out.nodes == 0) {
        return false;
    }
    const ggml_ext_node * quantize = at[out.nodes];
    if (!is_op(quantize, GGML_EXT_OP_QUANTIZE_I8_CONVROT) || !reads(quantize, 0, at[out.nodes - 1])) {
        return refuse("no " GGML_EXT_OP_QUANTIZE_I8_CONVROT " of the rows follows");
    }
    const ggml_ext_tensor & y      = *at[out.nodes - 1]->dst;
    const bool              halves = out.x.t == out.y.t && out.x.begin != out.y.begin;
    if (!is_f32(&y) || !serves(out.x, y, halves) || !serves(out.y, y, halves) || !serves(out.weight, y, false) ||
        !serves(out.modulation, y, false) || !serves(out.shift, y, false) || rows(*out.x.t) != rows(y)) {
        return refuse("a source is not F32 with dense rows as long as the output's");
    }
    for (const operand * o : {&out.y, &out.weight, &out.modulation, &out.shift}) {
        if (is_within(*o, at, out.nodes)) {
            return refuse("the rows are combined with themselves");
        }
    }
    return true;
}

int32_t match(const ggml_ext_graph * graph, int32_t first, void * /* user_data */) {
    const ggml_ext_node * at[MOST_NODES];
    for (int i = 0; i < MOST_NODES; ++i) {
        at[i] = ggml_ext_graph_node(graph, first + i);
    }
    row_maker made;
    if (!read(at, made)) {
        return 0;
    }
    const int64_t bytes = elements(*at[made.nodes - 1]->dst) * static_cast<int64_t>(sizeof(float));
    return bytes >= LEAST_BYTES ? made.nodes + 1
                                : refuse("the rows have %lld bytes in F32, it pays from %lld on", static_cast<long long>(bytes),
                                         static_cast<long long>(LEAST_BYTES));
}

const ggml_ext_node & quantizer_of(int32_t n_nodes, nodes_of_match nodes) { return *nodes[n_nodes - 1]; }

// Of each thread: a row, then what the quantiser needs.
size_t row_size(const ggml_ext_node & quantizer) { return aligned(static_cast<size_t>(quantizer.src[0]->ne[0]) * sizeof(float)); }

size_t scratch_size(const ggml_ext_node & quantizer) {
    return row_size(quantizer) + ggml_ext_cpu_quantize_i8_scratch_size(quantizer.src[0]->ne[0], convrot_group(quantizer.attrs));
}

int prepare(const ggml_ext_prepare_params * params, ggml_ext_prepared * out, void * /* user_data */) {
    want_workspace(*out, 0, scratch_size(quantizer_of(params->n_nodes, params->nodes)));
    return GGML_EXT_STATUS_SUCCESS;
}

const float * row_of(const operand & o, const ggml_ext_tensor & out, int64_t row) {
    if (o.t == nullptr) {
        return nullptr;
    }
    const char * data = static_cast<const char *>(o.t->data) + o.begin;
    for (int d = 1; d < GGML_EXT_MAX_DIMS; ++d) {
        data += o.t->ne[d] == 1 ? 0 : static_cast<size_t>(row % out.ne[d]) * o.t->nb[d];
        row /= out.ne[d];
    }
    return reinterpret_cast<const float *>(data);
}

int run(const ggml_ext_exec_params * params, int32_t /* phase */, int32_t ith, int32_t nth, void * /* user_data */) {
    const ggml_ext_node &   quantizer = quantizer_of(params->n_nodes, params->nodes);
    const ggml_ext_tensor & y         = *quantizer.src[0];
    row_maker               made;
    if (!read(params->nodes, made)) {
        return GGML_EXT_STATUS_FAILED;
    }
    const size_t  each = scratch_size(quantizer), row_bytes = row_size(quantizer);
    auto *        row  = static_cast<float *>(scratch_of(*params, 0, each, ith));
    char *        rest = reinterpret_cast<char *>(row) + row_bytes;
    auto *        out  = static_cast<char *>(quantizer.dst->data);
    const int64_t M = rows(y), K = y.ne[0], padded = ggml_ext_cpu_convrot_padded_rows(M);

    ggml_ext_cpu_quantize_i8_args args{};
    args.M           = 1;
    args.K           = K;
    args.group       = convrot_group(quantizer.attrs);
    args.padded_rows = 1;
    args.x           = row;
    for (int64_t m = padded * ith / nth; m < padded * (ith + 1) / nth; ++m) {
        char * q = out + m * K;
        if (m >= M) {
            std::memset(q, 0, static_cast<size_t>(K));
            continue;
        }
        made.args.x          = row_of(made.x, y, m);
        made.args.y          = row_of(made.y, y, m);
        made.args.weight     = row_of(made.weight, y, m);
        made.args.modulation = row_of(made.modulation, y, m);
        made.args.shift      = row_of(made.shift, y, m);
        args.q               = reinterpret_cast<int8_t *>(q);
        args.scale           = reinterpret_cast<float *>(out + ggml_ext_cpu_convrot_scale_offset(M, K)) + m;
        if (const int status = ggml_ext_cpu_make_row(&made.args, K, row); status != GGML_EXT_CPU_OK) {
            return status_of(status);
        }
        if (const int status = ggml_ext_cpu_quantize_i8(&args, rest, each - row_bytes, 0, 1); status != GGML_EXT_CPU_OK) {
            return status_of(status);
        }
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

void register_convrot_rows(registrar & r) {
    const char * const rules[][2] = {{"cpu.scale_convrot", "SCALE"},
                                     {"cpu.unary_convrot", "UNARY"},
                                     {"cpu.swiglu_convrot", "GLU"},
                                     {"cpu.norm_convrot", "NORM"},
                                     {"cpu.rms_norm_convrot", "RMS_NORM"}};
    for (const auto & [name, op] : rules) {
        ggml_ext_kernel_desc desc{};
        desc.name    = name;
        desc.op      = op;
        desc.match   = match;
        desc.prepare = prepare;
        desc.run     = run;
        r.kernel(desc);
    }
}

} // namespace cpu_ops
