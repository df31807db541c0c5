#pragma once
// NVRTC, CUDA's compiler as a library, found by name when it is first needed.

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

namespace ggml_ext::cuda {

struct nvrtc;

struct source {
    const char *              text;
    const char *              name; // NULL: none
    std::vector<const char *> options;
};

// The names in the order in which they are tried: a driver takes machine code of its own CUDA version and of earlier ones.
std::initializer_list<const char *> nvrtc_names(int driver_version);

// The first of these that is loaded already, else the first that can be loaded. A status: UNSUPPORTED where there is none.
int open_nvrtc(std::initializer_list<const char *> names, std::shared_ptr<const nvrtc> & out);

// Machine code for that compute capability, or PTX where this NVRTC does not know it yet. A status; the message holds the
// compiler's log. What the compiler says of a success goes to the log, level INFO.
int compile(const nvrtc & lib, const source & s, int major, int minor, std::string & image);

} // namespace ggml_ext::cuda
