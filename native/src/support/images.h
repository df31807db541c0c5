#pragma once
// The executable and the shared libraries that the process has loaded: its images.

#include <cstdint>
#include <string>
#include <vector>

namespace ggml_ext {

// Their paths, as the loader takes them.
std::vector<std::string> loaded_images();

struct memory_range {
    uintptr_t begin;
    uintptr_t end;
};

// The readable segments of the image that holds the address; none where no image does.
std::vector<memory_range> readable_memory_of(const void * address);

} // namespace ggml_ext
