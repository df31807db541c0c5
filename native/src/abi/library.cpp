// Finds the libraries of ggml in this process, and their functions by name.

#include "abi/probes.h"
#include "support/images.h"

#include <dlfcn.h>

#include <set>
#include <utility>
#include <vector>

namespace ggml_ext::abi {

namespace {

// A handle of dlopen. A ggml that passed all probes is kept: its tables are patched and its code is called.
class library {
public:
    library() = default;
    library(library && other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    library & operator=(library &&) = delete;
    ~library() {
        if (handle != nullptr) {
            dlclose(handle);
        }
    }

    bool open(const char * path, int mode) { return (handle = dlopen(path, mode)) != nullptr; }
    void keep() { handle = nullptr; }

    // without a handle: what is visible in the process
    void * find(const char * name) const { return dlsym(handle != nullptr ? handle : RTLD_DEFAULT, name); }

private:
    void * handle = nullptr;
};

std::string loader_text() {
    const char * text = dlerror();
    return text != nullptr ? text : "no reason given";
}

std::string file_of(const void * symbol) {
    Dl_info info;
    return dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

const void * image_of(const void * symbol) {
    Dl_info info;
    return dladdr(symbol, &info) != 0 ? info.dli_fbase : nullptr;
}

// Files of all objects in the process that define ggml_init. Asked through every loaded library, as a library that was opened
// without RTLD_GLOBAL is not visible to anyone else.
std::set<std::string> copies_of_base() {
    std::set<std::string>  files;
    std::set<const void *> images;
    const auto             add = [&](const library & lib) {
        const void * symbol = lib.find("ggml_init");
        if (symbol != nullptr && images.insert(image_of(symbol)).second) {
            files.insert(file_of(symbol));
        }
    };
    add(library());
    for (const std::string & name : loaded_images()) {
        library lib;
        if (lib.open(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) {
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

bool resolve_functions(const library & lib, const std::string & where, functions & fn, std::string & error) {
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

int open(const char * path, const char * what, library & lib, std::string & error) {
    if (path != nullptr && !lib.open(path, RTLD_NOW | RTLD_LOCAL)) {
        error = std::string("cannot load ") + what + " from '" + path + "': " + loader_text();
        return GGML_EXT_STATUS_INVALID_ARGUMENT;
    }
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

int resolve_library(const ggml_ext_load_params & params, ggml & out, std::string & error) {
    library base;
    library registry;
    int     status = open(params.base_path, "libggml-base", base, error);
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
    out.base_path          = file_of(ggml_init);

    if (params.ggml_path != nullptr) {
        if (registry.find("ggml_backend_reg_count") == nullptr) {
            error = std::string("'") + params.ggml_path + "' is not libggml: it has no ggml_backend_reg_count";
            return GGML_EXT_STATUS_INCOMPATIBLE;
        }
        if (registry.find("ggml_init") != ggml_init) {
            error = std::string("'") + params.ggml_path + "' is bound to " + file_of(registry.find("ggml_init")) +
                    ", not to " + out.base_path + ": two copies of libggml-base cannot be served in one process";
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
