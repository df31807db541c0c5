#include "cuda/nvrtc.h"

#include "cuda/library_names.h"
#include "support/shared_library.h"
#include "support/status.h"

#include <pthread.h>

#include <algorithm>

struct nvrtc_program;

namespace ggml_ext::cuda {

namespace {

using nvrtcResult  = int; // 0: success
using nvrtcProgram = nvrtc_program *;

constexpr nvrtcResult NVRTC_ERROR_INVALID_OPTION = 5;
constexpr nvrtcResult NVRTC_ERROR_COMPILATION    = 6;

} // namespace

// clang-format off
#define GGML_EXT_NVRTC_FUNCTIONS(F)                                                                                           \
    F(nvrtcResult, nvrtcVersion, (int *, int *))                                                                              \
    F(const char *, nvrtcGetErrorString, (nvrtcResult))                                                                       \
    F(nvrtcResult, nvrtcGetNumSupportedArchs, (int *))                                                                        \
    F(nvrtcResult, nvrtcGetSupportedArchs, (int *))                                                                           \
    F(nvrtcResult, nvrtcCreateProgram, (nvrtcProgram *, const char *, const char *, int, const char * const *, const char * const *)) \
    F(nvrtcResult, nvrtcDestroyProgram, (nvrtcProgram *))                                                                     \
    F(nvrtcResult, nvrtcCompileProgram, (nvrtcProgram, int, const char * const *))                                            \
    F(nvrtcResult, nvrtcGetProgramLogSize, (nvrtcProgram, size_t *))                                                          \
    F(nvrtcResult, nvrtcGetProgramLog, (nvrtcProgram, char *))                                                                \
    F(nvrtcResult, nvrtcGetCUBINSize, (nvrtcProgram, size_t *))                                                               \
    F(nvrtcResult, nvrtcGetCUBIN, (nvrtcProgram, char *))                                                                     \
    F(nvrtcResult, nvrtcGetPTXSize, (nvrtcProgram, size_t *))                                                                 \
    F(nvrtcResult, nvrtcGetPTX, (nvrtcProgram, char *))
// clang-format on

struct nvrtc {
#define GGML_EXT_NVRTC_DECLARE(result, name, arguments) result(*name) arguments = nullptr;
    GGML_EXT_NVRTC_FUNCTIONS(GGML_EXT_NVRTC_DECLARE)
#undef GGML_EXT_NVRTC_DECLARE
    shared_library   library;
    int              major = 0, minor = 0;
    std::vector<int> architectures; // 90: sm_90 and compute_90; ascending
};

namespace {

int check(const nvrtc & lib, nvrtcResult result, const char * what) {
    return result == 0 ? static_cast<int>(GGML_EXT_STATUS_SUCCESS)
                       : fail(GGML_EXT_STATUS_FAILED, "AOT-1: %s: %s", what, lib.nvrtcGetErrorString(result));
}

struct target {
    std::string option;
    bool        is_virtual = false; // PTX, for the driver to compile
};

int find_target(const nvrtc & lib, int major, int minor, target & out) {
    const int  capability = major * 10 + minor;
    const auto next       = std::upper_bound(lib.architectures.begin(), lib.architectures.end(), capability);
    if (next == lib.architectures.begin()) {
        std::string known;
        for (const int a : lib.architectures) {
            known += format("%ssm_%d", known.empty() ? "" : ", ", a);
        }
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "AOT-1: NVRTC %d.%d does not compile for this GPU, sm_%d, only for %s", lib.major, lib.minor,
                    capability, known.c_str());
    }
    const int nearest = *std::prev(next);
    out.is_virtual    = nearest != capability;
    // the code is for this GPU alone, so it may use what its architecture has beyond the common instructions
    out.option = format(out.is_virtual ? "--gpu-architecture=compute_%d" : major >= 9 ? "--gpu-architecture=sm_%da"
                                                                                      : "--gpu-architecture=sm_%d",
                        nearest);
    return GGML_EXT_STATUS_SUCCESS;
}

struct program {
    const nvrtc & lib;
    nvrtcProgram  handle = nullptr;

    explicit program(const nvrtc & l) : lib(l) {}
    program(const program &)             = delete;
    program & operator=(const program &) = delete;
    ~program() {
        if (handle != nullptr) {
            lib.nvrtcDestroyProgram(&handle);
        }
    }

    std::string log() const {
        size_t      size = 0;
        std::string text;
        if (lib.nvrtcGetProgramLogSize(handle, &size) == 0 && size > 1) {
            text.resize(size);
            lib.nvrtcGetProgramLog(handle, text.data());
            text.resize(size - 1); // its zero
        }
        return text;
    }
};

// The compiler recurses as deep as the text is nested, and on a stack of one MiB, as threads of a JVM have, dies of what others
// compile: it gets one of its own.
int compile_on_large_stack(const program & p, const std::vector<const char *> & options, nvrtcResult & result) {
    constexpr size_t STACK_BYTES = 64 * 1024 * 1024;
    struct job {
        const program &                   p;
        const std::vector<const char *> & options;
        nvrtcResult                       result;
    } j{p, options, 0};
    pthread_attr_t attributes;
    pthread_t      thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const int error = pthread_create(
        &thread, &attributes,
        [](void * data) -> void * {
            job & the  = *static_cast<job *>(data);
            the.result = the.p.lib.nvrtcCompileProgram(the.p.handle, static_cast<int>(the.options.size()), the.options.data());
            return nullptr;
        },
        &j);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        return fail(GGML_EXT_STATUS_NO_MEMORY, "AOT-1: no thread with %zu bytes of stack for the compiler: error %d", STACK_BYTES, error);
    }
    pthread_join(thread, nullptr);
    result = j.result;
    return GGML_EXT_STATUS_SUCCESS;
}

} // namespace

std::initializer_list<const char *> nvrtc_names(int driver_version) {
    return driver_version >= 13000 ? NVRTC_NAMES_NEWEST_FIRST : NVRTC_NAMES_FOR_12;
}

int open_nvrtc(std::initializer_list<const char *> names, std::shared_ptr<const nvrtc> & out) {
    auto lib = std::make_shared<nvrtc>();
    if (!lib->library.open(names)) {
        std::string all;
        for (const char * name : names) {
            all += (all.empty() ? "" : ", ") + std::string(name);
        }
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "AOT-1: CUDA source text needs NVRTC, and it cannot be loaded (%s): %s", all.c_str(),
                    loader_error().c_str());
    }
#define GGML_EXT_NVRTC_FIND(result, name, arguments)                                                                        \
    lib->library.find(#name, lib->name);                                                                                    \
    if (lib->name == nullptr) {                                                                                             \
        return fail(GGML_EXT_STATUS_UNSUPPORTED, "AOT-1: this NVRTC has no %s: that of CUDA 12 or later is needed", #name); \
    }
    GGML_EXT_NVRTC_FUNCTIONS(GGML_EXT_NVRTC_FIND)
#undef GGML_EXT_NVRTC_FIND
    int n      = 0;
    int status = check(*lib, lib->nvrtcVersion(&lib->major, &lib->minor), "nvrtcVersion");
    if (status == GGML_EXT_STATUS_SUCCESS) {
        status = check(*lib, lib->nvrtcGetNumSupportedArchs(&n), "nvrtcGetNumSupportedArchs");
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        lib->architectures.resize(static_cast<size_t>(n));
        status = check(*lib, lib->nvrtcGetSupportedArchs(lib->architectures.data()), "nvrtcGetSupportedArchs");
        std::sort(lib->architectures.begin(), lib->architectures.end());
        out = std::move(lib);
    }
    return status;
}

int compile(const nvrtc & lib, const source & s, int major, int minor, std::string & image) {
    std::vector<const char *> options = s.options;
    for (const std::string option : options) {
        if (option.rfind("--gpu-architecture", 0) == 0 || option.rfind("-arch", 0) == 0) {
            return fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: option %s: the architecture is the device's, sm_%d%d", option.c_str(), major,
                        minor);
        }
    }
    target t;
    if (const int status = find_target(lib, major, minor, t); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    options.push_back(t.option.c_str());
    program p(lib);
    int     status = check(lib, lib.nvrtcCreateProgram(&p.handle, s.text, s.name, 0, nullptr, nullptr), "nvrtcCreateProgram");
    if (status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    nvrtcResult result = 0;
    if (status = compile_on_large_stack(p, options, result); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    const std::string log = p.log();
    if (result == NVRTC_ERROR_COMPILATION) {
        return fail(GGML_EXT_STATUS_FAILED, "AOT-1: the source text does not compile (NVRTC %d.%d, %s):\n%s", lib.major, lib.minor,
                    t.option.c_str(), log.c_str());
    }
    if (result != 0) {
        const int kind = result == NVRTC_ERROR_INVALID_OPTION ? GGML_EXT_STATUS_INVALID_ARGUMENT : GGML_EXT_STATUS_FAILED;
        return fail(kind, "AOT-1: nvrtcCompileProgram: %s%s%s", lib.nvrtcGetErrorString(result), log.empty() ? "" : "\n", log.c_str());
    }
    if (!log.empty()) {
        ggml_ext::log(GGML_EXT_LOG_LEVEL_INFO, "%s: %s", s.name != nullptr ? s.name : "CUDA source text", log.c_str());
    }
    size_t size = 0;
    status      = check(lib, (t.is_virtual ? lib.nvrtcGetPTXSize : lib.nvrtcGetCUBINSize)(p.handle, &size), "nvrtcGetCUBINSize");
    if (status == GGML_EXT_STATUS_SUCCESS && size == 0) {
        status = fail(GGML_EXT_STATUS_INVALID_ARGUMENT, "AOT-1: an option asks the compiler for something else than machine code");
    }
    if (status == GGML_EXT_STATUS_SUCCESS) {
        image.resize(size);
        status = check(lib, (t.is_virtual ? lib.nvrtcGetPTX : lib.nvrtcGetCUBIN)(p.handle, image.data()), "nvrtcGetCUBIN");
    }
    return status;
}

} // namespace ggml_ext::cuda
