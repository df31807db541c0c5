#include "abi/ggml.h"

#include "abi/probes.h"

#include <cstring>
#include <exception>

namespace ggml_ext::abi {

namespace {

int incompatible(const ggml & g, const char * what, const std::string & why, std::string & error) {
    error = "ggml " + (g.version.empty() ? "" : g.version + " ") + "(" + g.base_path + ") is not compatible: " + what + ": " + why +
            "; it stays unpatched";
    return GGML_EXT_STATUS_INCOMPATIBLE;
}

int load_checked(const ggml_ext_load_params & params, ggml & out, std::string & error) {
    const int status = resolve_library(params, out, error);
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }

    std::string why;
    if (!probe_ops(out, why)) {
        return incompatible(out, "names of operations", why, error);
    }
    if (!probe_tensor(out, why)) {
        return incompatible(out, "struct ggml_tensor", why, error);
    }
    if (!probe_tables(out, why)) {
        return incompatible(out, "backend interface", why, error);
    }
    out.has_cgraph = probe_graph(out, why);
    if (!out.has_cgraph) {
        out.note = "struct ggml_cgraph: " + why + "; no planning, no fusion";
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

int load(const ggml_ext_load_params & params, ggml & out, std::string & error) {
    try {
        ggml      found;
        const int status = load_checked(params, found, error);
        if (status == GGML_EXT_STATUS_SUCCESS) {
            out = found;
        }
        return status;
    } catch (const std::exception & e) {
        error = e.what();
        return GGML_EXT_STATUS_NO_MEMORY;
    }
}

int32_t ggml::find_op(const char * name) const {
    for (int32_t id = 0; id < n_ops(); id++) {
        if (std::strcmp(op_name(id), name) == 0) {
            return id;
        }
    }
    return -1;
}

int32_t graph_use_count(const ggml_cgraph * graph, const ggml_tensor * tensor) {
    const ggml_hash_set_mirror & set = graph->visited;
    if (set.size == 0) {
        return 0;
    }
    const size_t first = (reinterpret_cast<uintptr_t>(tensor) >> 4) % set.size;
    for (size_t n = 0, i = first; n < set.size; n++, i = (i + 1) % set.size) {
        if ((set.used[i / 32] >> (i % 32) & 1) == 0) {
            return 0;
        }
        if (set.keys[i] == tensor) {
            return graph->use_counts[i];
        }
    }
    return 0;
}

} // namespace ggml_ext::abi
