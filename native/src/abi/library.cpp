// Finds the libraries of ggml in this process, and their functions by name.

#include "abi/probes.h"
#include "support/images.h"
#include "support/shared_library.h"

#include <set>
#include <vector>

namespace ggml_ext::abi {

namespace {

// Files of all images of the process that define ggml_init. Asked through every loaded library, as a library that was opened for
// its user alone is not visible to anyone else.
std::set<std::string> copies_of_base() {
    std::set<std::string>  files;
    std::set<const void *> images;
    const auto             add = [&](const shared_library & lib) {
        const void * symbol = lib.find("ggml_init");
        const image  holder = symbol != nullptr ? image_of(symbol) : image{};
        if (symbol != nullptr && images.insert(holder.base).second) {
            files.insert(holder.file);
        }
    };
    add(shared_library());
    for (const std::string & name : loaded_images()) {
        shared_library lib;
        if (lib.open_loaded(name.c_str())) {
            add(lib);
        }
    }
    return files;
}

std::string list(const std::vector<std::string> & names) {
    constexpr size_t SHOWN = 8;

    std::string text;
    for (size_t i = 0; i < names.size() && i < SHOWN; i++) {
        text += (i == 0 ? "" : ", ") + names[i];
    }
    if (names.size() > SHOWN) {
        text += " and " + std::to_string(names.size() - SHOWN) + " more";
    }
    return text;
}

bool resolve_functions(const shared_library & lib, const std::string & where, functions & fn, std::string & error) {
    std::vector<std::string> missing;
    size_t                   n = 0;

#define GGML_EXT_ABI_RESOLVE(name, result, arguments)               \
    n++;                                                            \
    fn.name = reinterpret_cast<decltype(fn.name)>(lib.find(#name)); \
    if (fn.name == nullptr) {                                       \
        missing.push_back(#name);                                   \
    }
    GGML_EXT_ABI_FUNCTIONS(GGML_EXT_ABI_RESOLVE)
#undef GGML_EXT_ABI_RESOLVE
    fn.ggml_version = reinterpret_cast<decltype(fn.ggml_version)>(lib.find("ggml_version"));

    if (missing.size() == n) {
        error = where + " is not libggml-base: it has none of ggml's functions (ggml_init, ggml_new_tensor, ...)";
    } else if (!missing.empty()) {
        error = where + " is not a ggml that ggml-ext knows (0.20 or later): it lacks " + list(missing);
    }
    return missing.empty();
}

int open(const char * path, const char * what, shared_library & lib, std::string & error) {
    if (path != nullptr && !lib.load(path)) {
        error = std::string("cannot load ") + what + " from '" + path + "': " + loader_error();
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

int resolve_library(const ggml_ext_load_params & params, ggml & out, std::string & error) {
    shared_library base;
    shared_library registry;
    int            status = open(params.base_path, "libggml-base", base, error);
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = open(params.ggml_path, "libggml", registry, error);
    }
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }

    const std::string where =
        params.base_path != nullptr ? std::string("'") + params.base_path + "'" : "what is visible in this process (no path was given)";
    if (!resolve_functions(base, where, out.fn, error)) {
        return GGML_EXT_STATUS_INCOMPATIBLE;
    }
    const void * ggml_init = reinterpret_cast<const void *>(out.fn.ggml_init);
    out.base_path          = image_of(ggml_init).file;

    if (params.ggml_path != nullptr) {
        if (registry.find("ggml_backend_reg_count") == nullptr) {
            error = std::string("'") + params.ggml_path + "' is not libggml: it has no ggml_backend_reg_count";
            return GGML_EXT_STATUS_INCOMPATIBLE;
        }
        // NULL: this system's look-up does not follow what a library depends on; a second copy of the base is then found below.
        const void * bound = registry.find("ggml_init");
        if (bound != nullptr && bound != ggml_init) {
            error = std::string("'") + params.ggml_path + "' is bound to " + image_of(bound).file + ", not to " + out.base_path +
                    ": two copies of libggml-base cannot be served in one process";
            return GGML_EXT_STATUS_INCOMPATIBLE;
        }
    }

    const std::set<std::string> copies = copies_of_base();
    if (copies.size() > 1) {
        error = "there are two copies of libggml-base in this process, and backends bind to either:";
        for (const std::string & file : copies) {
            error += " " + file;
        }
        error += "; load one ggml only";
        return GGML_EXT_STATUS_INCOMPATIBLE;
    }

    out.version = out.fn.ggml_version != nullptr ? out.fn.ggml_version() : "";
    base.keep();
    registry.keep();
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace ggml_ext::abi
