#if !defined(__APPLE__) && !defined(_WIN32)

#    include "support/images.h"

#    include <link.h>

#    include <utility>

namespace ggml_ext {

namespace {

int add_name(dl_phdr_info * info, size_t, void * names) {
    if (info->dlpi_name != nullptr && info->dlpi_name[0] != '\0') {
        static_cast<std::vector<std::string> *>(names)->push_back(info->dlpi_name);
    }
    return 0;
}

struct search {
    uintptr_t                 address;
    std::vector<memory_range> found;
};

int add_segments(dl_phdr_info * info, size_t, void * data) {
    search &                  s     = *static_cast<search *>(data);
    bool                      holds = false;
    std::vector<memory_range> here;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) & header = info->dlpi_phdr[i];
        if (header.p_type == PT_LOAD && (header.p_flags & PF_R) != 0) {
            const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
            here.push_back({begin, begin + header.p_memsz});
            holds |= here.back().begin <= s.address && s.address < here.back().end;
        }
    }
    if (holds) {
        s.found = std::move(here);
    }
    return holds ? 1 : 0;
}

} // namespace

std::vector<std::string> loaded_images() {
    std::vector<std::string> names;
    dl_iterate_phdr(add_name, &names);
    return names;
}

std::vector<memory_range> readable_memory_of(const void * address) {
    search s{reinterpret_cast<uintptr_t>(address), {}};
    dl_iterate_phdr(add_segments, &s);
    return s.found;
}

} // namespace ggml_ext

#endif
