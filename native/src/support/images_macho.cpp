#if defined(__APPLE__)

#    include "support/images.h"

#    include <mach-o/dyld.h>
#    include <mach-o/loader.h>

namespace ggml_ext {

std::vector<std::string> loaded_images() {
    std::vector<std::string> names;
    for (uint32_t i = 0; i < _dyld_image_count(); i++) {
        const char * name = _dyld_get_image_name(i);
        if (name != nullptr) { // NULL: unloaded meanwhile
            names.push_back(name);
        }
    }
    return names;
}

std::vector<memory_range> readable_memory_of(const void * address) {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    for (uint32_t i = 0; i < _dyld_image_count(); i++) {
        const auto * header = reinterpret_cast<const mach_header_64 *>(_dyld_get_image_header(i));
        if (header == nullptr || header->magic != MH_MAGIC_64) {
            continue;
        }
        const auto                slide   = static_cast<uintptr_t>(_dyld_get_image_vmaddr_slide(i));
        const auto *              command = reinterpret_cast<const load_command *>(header + 1);
        bool                      holds   = false;
        std::vector<memory_range> here;
        for (uint32_t k = 0; k < header->ncmds; k++) {
            const auto * segment = reinterpret_cast<const segment_command_64 *>(command);
            if (command->cmd == LC_SEGMENT_64 && (segment->initprot & 1) != 0) { // VM_PROT_READ
                const auto begin = static_cast<uintptr_t>(segment->vmaddr) + slide;
                here.push_back({begin, begin + static_cast<uintptr_t>(segment->vmsize)});
                holds |= here.back().begin <= wanted && wanted < here.back().end;
            }
            command = reinterpret_cast<const load_command *>(reinterpret_cast<const char *>(command) + command->cmdsize);
        }
        if (holds) {
            return here;
        }
    }
    return {};
}

} // namespace ggml_ext

#endif
