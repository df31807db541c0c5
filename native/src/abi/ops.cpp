// The names of operations. ggml_op_name reads an array without a check, and its length is not public: the scan trusts
// only strings of the library itself, and ends at what cannot be the name of another operation.

#include "abi/probes.h"
#include "support/images.h"

#include <set>
#include <vector>

namespace ggml_ext::abi {

namespace {

constexpr int32_t MAX_OPS  = 512;
constexpr size_t  MAX_NAME = 64;

bool is_op_name(const std::vector<memory_range> & image, const char * text) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(text);
    for (const memory_range & range : image) {
        if (address < range.begin || address >= range.end) {
            continue;
        }
        for (size_t k = 0; k < MAX_NAME && address + k < range.end; k++) {
            const char c = text[k];
            if (c == '\0') {
                return k > 0;
            }
            if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
                return false;
            }
        }
    }
    return false;
}

} // namespace

bool probe_ops(ggml & g, std::string & why) {
    const std::vector<memory_range> image = readable_memory_of(reinterpret_cast<const void *>(g.fn.ggml_op_name));

    // The arrays that may lie behind it hold names as well: of unary operations and gated units, which have other names than
    // any operation, and symbols ("x+y"), which are no names. Reading one entry past the end is safe: behind an array of
    // pointers, which are relocated, at least the library's dynamic section follows in the same segment.
    const std::string unary = g.fn.ggml_unary_op_name(0);
    const std::string glu   = g.fn.ggml_glu_op_name(0);

    std::set<std::string> names;
    for (int32_t id = 0; id < MAX_OPS; id++) {
        const char * name = g.fn.ggml_op_name(id);
        if (!is_op_name(image, name) || name == unary || name == glu || !names.insert(name).second) {
            break;
        }
        g.op_names.push_back(name);
    }

    op_ids & op   = g.op;
    op.none       = g.find_op("NONE");
    op.dup        = g.find_op("DUP");
    op.add        = g.find_op("ADD");
    op.cpy        = g.find_op("CPY");
    op.cont       = g.find_op("CONT");
    op.reshape    = g.find_op("RESHAPE");
    op.view       = g.find_op("VIEW");
    op.permute    = g.find_op("PERMUTE");
    op.transpose  = g.find_op("TRANSPOSE");
    op.set        = g.find_op("SET");
    op.set_rows   = g.find_op("SET_ROWS");
    op.custom     = g.find_op("CUSTOM");
    op.mul_mat    = g.find_op("MUL_MAT");
    op.mul_mat_id = g.find_op("MUL_MAT_ID");
    op.unary      = g.find_op("UNARY");
    op.glu        = g.find_op("GLU");

    for (const char * needed : {"NONE", "ADD", "VIEW", "CUSTOM", "MUL_MAT"}) {
        if (g.find_op(needed) < 0) {
            why = std::string("there is no ") + needed + " among the " + std::to_string(g.n_ops()) + " names found";
            return false;
        }
    }
    return true;
}

} // namespace ggml_ext::abi
