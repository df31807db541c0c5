#include "fake_nvrtc.h"

#include "fake_images.h"
#include "ggml-ext.h"

#include <algorithm>
#include <mutex>
#include <sstream>
#include <vector>

#define FAKE extern "C" GGML_EXT_API

struct program {
    std::string text, name, log, entries;
    bool        for_linking = false; // no machine code yet
};

namespace {

constexpr int INVALID_OPTION = 5, COMPILATION = 6;

std::mutex       mutex;
std::vector<int> architectures{75, 80, 90};
std::string      latest_options;

std::string size_of(const std::string & parameter) {
    if (parameter.find('*') != std::string::npos || parameter.find("long long") != std::string::npos ||
        parameter.find("double") != std::string::npos) {
        return "8";
    }
    return "4"; // int, float
}

std::string entries_of(const std::string & text) {
    const std::string kernel = "extern \"C\" __global__ void ";
    std::string       entries;
    for (size_t at = text.find(kernel); at != std::string::npos; at = text.find(kernel, at + 1)) {
        const size_t       name = at + kernel.size(), open = text.find('(', name), close = text.find(')', open);
        std::string        sizes;
        std::istringstream parameters(text.substr(open + 1, close - open - 1));
        for (std::string parameter; std::getline(parameters, parameter, ',');) {
            sizes += (sizes.empty() ? "" : ",") + size_of(parameter);
        }
        entries += ".entry " + text.substr(name, open - name) + " " + (sizes.empty() ? "-" : sizes) + " 1024 0\n";
    }
    return entries;
}

// as the real one for text that is nested deeply
__attribute__((noinline)) void use_stack() {
    volatile char stack[4 << 20];
    for (size_t i = 0; i < sizeof(stack); i += 4096) {
        stack[i] = 0;
    }
}

} // namespace

FAKE void fake_nvrtc_set_architectures(const int * values, int n) {
    const std::lock_guard<std::mutex> lock(mutex);
    architectures.assign(values, values + n);
}

FAKE const char * fake_nvrtc_options() {
    const std::lock_guard<std::mutex> lock(mutex);
    return latest_options.c_str();
}

FAKE int nvrtcVersion(int * major, int * minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

FAKE const char * nvrtcGetErrorString(int) {
    return "NVRTC_ERROR_OF_THE_FAKE";
}

FAKE int nvrtcGetNumSupportedArchs(int * n) {
    const std::lock_guard<std::mutex> lock(mutex);
    *n = static_cast<int>(architectures.size());
    return 0;
}

FAKE int nvrtcGetSupportedArchs(int * out) {
    const std::lock_guard<std::mutex> lock(mutex);
    std::copy(architectures.begin(), architectures.end(), out);
    return 0;
}

FAKE int nvrtcCreateProgram(program ** out, const char * text, const char * name, int, const char * const *, const char * const *) {
    *out = new program{text, name != nullptr ? name : "default_program", "", "", false};
    return 0;
}

FAKE int nvrtcDestroyProgram(program ** p) {
    delete *p;
    *p = nullptr;
    return 0;
}

FAKE int nvrtcCompileProgram(program * p, int n, const char * const * options) {
    std::string all;
    for (int i = 0; i < n; ++i) {
        all += std::string(options[i]) + " ";
        p->for_linking = p->for_linking || std::strcmp(options[i], "--dlink-time-opt") == 0;
        if (std::strncmp(options[i], "--", 2) != 0) {
            p->log = std::string("unrecognized option ") + options[i];
            return INVALID_OPTION;
        }
    }
    {
        const std::lock_guard<std::mutex> lock(mutex);
        latest_options = all;
    }
    std::istringstream lines(p->text);
    int                number = 0;
    for (std::string line; std::getline(lines, line);) {
        ++number;
        const bool is_error = line.rfind("#error ", 0) == 0;
        if (is_error || line.rfind("#warning ", 0) == 0) {
            p->log += p->name + "(" + std::to_string(number) + "): " + line.substr(1) + "\n";
        }
        if (is_error) {
            return COMPILATION;
        }
    }
    if (p->text.find("nested deeply") != std::string::npos) {
        use_stack();
    }
    p->entries = entries_of(p->text);
    return 0;
}

FAKE int nvrtcGetProgramLogSize(program * p, size_t * size) {
    *size = p->log.size() + 1;
    return 0;
}

FAKE int nvrtcGetProgramLog(program * p, char * out) {
    std::memcpy(out, p->log.c_str(), p->log.size() + 1);
    return 0;
}

FAKE int nvrtcGetCUBINSize(program * p, size_t * size) {
    *size = p->for_linking ? 0 : fake::cubin(p->entries).size();
    return 0;
}

FAKE int nvrtcGetCUBIN(program * p, char * out) {
    const std::string image = fake::cubin(p->entries);
    std::memcpy(out, image.data(), image.size());
    return 0;
}

FAKE int nvrtcGetPTXSize(program * p, size_t * size) {
    *size = fake::ptx(p->entries).size() + 1;
    return 0;
}

FAKE int nvrtcGetPTX(program * p, char * out) {
    const std::string image = fake::ptx(p->entries);
    std::memcpy(out, image.c_str(), image.size() + 1);
    return 0;
}
