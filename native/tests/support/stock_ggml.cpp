#include "support/stock_ggml.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

namespace ggml_ext::test {

namespace {

[[noreturn]] void fail(const std::string & message) {
    std::fprintf(stderr, "stock ggml for tests: %s\n", message.c_str());
    std::exit(2);
}

#if defined(_WIN32)
constexpr const char * PREFIX = "";
constexpr const char * SUFFIX = ".dll";
#else
constexpr const char * PREFIX = "lib";
constexpr const char * SUFFIX = ".so";
#endif

// libggml-base.so, libggml.so, or one of the forms with a version: the shortest that begins with its name and ".", and has ".so"
std::string find_library(const std::string & directory, const std::string & library) {
    const std::string        stem = PREFIX + library;
    std::vector<std::string> found;
    std::error_code          error;
    for (const auto & entry : std::filesystem::directory_iterator(directory, error)) {
        const std::string name = entry.path().filename().string();
        if (name.rfind(stem + ".", 0) == 0 && name.find(SUFFIX) != std::string::npos) {
            found.push_back(entry.path().string());
        }
    }
    if (found.empty()) {
        fail("there is no " + stem + " in '" + directory + "' (GGML_EXT_TEST_GGML_DIR)");
    }
    return *std::min_element(found.begin(), found.end(), [](const std::string & a, const std::string & b) {
        return a.size() != b.size() ? a.size() < b.size() : a < b;
    });
}

void * open(const std::string & path) {
    void * handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        fail(dlerror());
    }
    return handle;
}

// of either
void * find(void * handle, void * other, const char * name) {
    void * symbol = dlsym(handle, name);
    if (symbol == nullptr) {
        symbol = dlsym(other, name);
    }
    if (symbol == nullptr) {
        fail(std::string("it has no ") + name);
    }
    return symbol;
}

void only_errors(int32_t level, const char * text, void *) {
    if (level >= GGML_EXT_LOG_LEVEL_ERROR) {
        std::fputs(text, stderr);
    }
}

stock_ggml load() {
    const char * directory = std::getenv("GGML_EXT_TEST_GGML_DIR");
    if (directory == nullptr || directory[0] == '\0') {
        fail("set GGML_EXT_TEST_GGML_DIR to the folder with libggml-base, libggml and the CPU backend");
    }
    stock_ggml s;
    s.directory   = directory;
    s.base_path   = find_library(directory, "ggml-base");
    s.ggml_path   = find_library(directory, "ggml");
    void * base   = open(s.base_path);
    void * handle = open(s.ggml_path);

#define GGML_EXT_TEST_RESOLVE(name, result, arguments) s.base.name = reinterpret_cast<decltype(s.base.name)>(find(base, base, #name));
    GGML_EXT_ABI_FUNCTIONS(GGML_EXT_TEST_RESOLVE)
#undef GGML_EXT_TEST_RESOLVE
    s.base.ggml_version = reinterpret_cast<decltype(s.base.ggml_version)>(find(base, base, "ggml_version"));

#define GGML_EXT_TEST_RESOLVE(name, result, arguments) s.name = reinterpret_cast<decltype(s.name)>(find(handle, base, #name));
    GGML_EXT_TEST_FUNCTIONS(GGML_EXT_TEST_RESOLVE)
#undef GGML_EXT_TEST_RESOLVE

    if (s.ggml_backend_dev_count() == 0) { // else a program that uses ggml itself has loaded us
        s.ggml_log_set(only_errors, nullptr);
        s.ggml_backend_load_all_from_path(directory);
    }
    s.cpu = s.ggml_backend_dev_by_type(0); // GGML_BACKEND_DEVICE_TYPE_CPU
    if (s.cpu == nullptr) {
        fail("there is no CPU backend for this machine in '" + s.directory + "'");
    }
    return s;
}

} // namespace

const stock_ggml & stock() {
    static const stock_ggml instance = load();
    return instance;
}

} // namespace ggml_ext::test
