// What the preflight looks at in ggml's CUDA library: the file of one of its functions, and the fat binaries in that file. The
// headers are those that nvcc writes; CODE says which code they announce.
#include <stdbool.h>
#include <stdint.h>

struct code {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t size;
    uint32_t compressed_size, options;
    uint16_t minor, major;
    uint32_t arch;
    uint64_t name, flags, zero[2];
    uint8_t  bytes[16];
};

struct fat_binary {
    uint32_t    magic;
    uint16_t    version, header_size;
    uint64_t    size;
    struct code codes[N_CODES];
};

#define MACHINE_CODE(arch, flags) {2, 257, 64, 16, 0, 0, 8, 1, arch, 0, flags, {0}, {0}}
#define PTX(arch, major, minor) {1, 257, 64, 16, 0, 0, minor, major, arch, 0, 0x8011, {0}, {0}}

#if defined(_WIN32)
#    define SECTION ".nv_fatb" // names have eight bytes there
#else
#    define SECTION ".nv_fatbin"
#endif

__attribute__((section(SECTION), used)) static const struct fat_binary binaries[2] = {
    {0xba55ed50, 1, 16, sizeof(struct code) * N_CODES, {CODES}},
    {0xba55ed50, 1, 16, sizeof(struct code) * N_CODES, {CODES}},
};

static bool (*answer)(void * device, const void * op);

void fake_set_supports_op(bool (*function)(void * device, const void * op)) { answer = function; }

bool fake_supports_op(void * device, const void * op) { return answer(device, op); }
