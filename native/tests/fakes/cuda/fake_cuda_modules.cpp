// Modules of the fake driver, and launches of their kernels.

#include "fake_cuda_state.h"
#include "fake_images.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

using namespace fake;

namespace {

constexpr CUresult INVALID_IMAGE = 200, INVALID_PTX = 218;
constexpr int      SHARED_MEMORY_AS_IT_COMES = 48 * 1024;

using kernel_body = void (*)(const fake_cuda_kernel_run *);

std::map<std::string, kernel_body> & bodies() {
    static auto * instance = new std::map<std::string, kernel_body>();
    return *instance;
}

// as the driver, which is told no size
std::string bytes_of_image(const void * image) {
    const auto * bytes = static_cast<const char *>(image);
    if (std::memcmp(bytes, ELFMAG, SELFMAG) == 0) {
        Elf64_Ehdr elf;
        std::memcpy(&elf, bytes, sizeof(elf));
        return std::string(bytes, elf.e_shoff + elf.e_shnum * sizeof(Elf64_Shdr));
    }
    fat_binary_header header;
    std::memcpy(&header.magic, bytes, sizeof(header.magic));
    if (header.magic == fat_binary_header::MAGIC) {
        std::memcpy(&header, bytes, sizeof(header));
        return std::string(bytes, header.header_size + header.size);
    }
    return bytes;
}

} // namespace

struct CUfunc_st {
    CUmodule            module = nullptr;
    std::string         name;
    std::vector<size_t> param_sizes;
    int                 max_threads = 0, static_shared = 0, max_dynamic_shared = 0, architecture = 0;
};

struct CUmod_st {
    CUcontext                        context = nullptr;
    std::shared_ptr<char>            code    = std::make_shared<char>(); // shared by work that is still to run
    std::map<std::string, CUfunc_st> functions;
};

namespace {

void read_entries(const std::string & text, CUmod_st & module) {
    for (size_t at = text.find(".entry "); at != std::string::npos; at = text.find(".entry ", at + 1)) {
        std::istringstream line(text.substr(at + 7, text.find('\n', at) - at - 7));
        CUfunc_st          f;
        std::string        sizes, max_threads, static_shared, architecture;
        line >> f.name >> sizes >> max_threads >> static_shared >> architecture;
        f.module             = &module;
        f.max_threads        = std::atoi(max_threads.c_str()); // not from the stream: beside another C++ runtime it may lack its locale
        f.static_shared      = std::atoi(static_shared.c_str());
        f.architecture       = architecture.empty() ? 90 : std::atoi(architecture.c_str());
        f.max_dynamic_shared = SHARED_MEMORY_AS_IT_COMES - f.static_shared;
        std::istringstream list(sizes == "-" ? "" : sizes);
        for (std::string size; std::getline(list, size, ',');) {
            f.param_sizes.push_back(std::stoul(size));
        }
        module.functions.emplace(f.name, f);
    }
}

struct launched {
    std::shared_ptr<char>    code;
    kernel_body              body;
    std::vector<std::string> values;
    fake_cuda_kernel_run     run;
};

void run_launched(void * data) {
    auto &                    l = *static_cast<launched *>(data);
    std::vector<const void *> args;
    for (const std::string & v : l.values) {
        args.push_back(v.data());
    }
    l.run.args = args.data();
    l.body(&l.run);
}

} // namespace

FAKE void fake_cuda_set_kernel(const char * name, kernel_body run) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    bodies()[name] = run;
}

FAKE CUresult cuModuleLoadDataEx(CUmodule * out, const void * image, unsigned n_options, CUjit_option * options, void ** values) {
    const entry e("cuModuleLoadDataEx");
    if (e.result != 0) {
        return e.result;
    }
    const std::string text = bytes_of_image(image);
    if (text.find("syntax error") != std::string::npos) {
        for (unsigned i = 0; i + 1 < n_options; ++i) {
            if (options[i] == CU_JIT_ERROR_LOG_BUFFER && options[i + 1] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
                std::snprintf(static_cast<char *>(values[i]), reinterpret_cast<size_t>(values[i + 1]), "line 3; fatal: a syntax error");
            }
        }
        return INVALID_PTX;
    }
    auto module     = std::make_unique<CUmod_st>();
    module->context = current_context();
    read_entries(text, *module);
    if (module->functions.empty()) {
        return INVALID_IMAGE;
    }
    *out = module.release();
    ++the().live;
    return 0;
}

FAKE CUresult cuModuleUnload(CUmodule module) {
    const entry e("cuModuleUnload");
    if (module->context != current_context()) {
        fake_cuda_note_violation("a module is unloaded in another context than its own");
        return INVALID_CONTEXT;
    }
    if (module->code.use_count() > 1) {
        fake_cuda_note_violation("a module is unloaded while work or a graph holds its code");
    }
    delete module;
    --the().live;
    return e.result;
}

FAKE CUresult cuModuleGetFunction(CUfunction * out, CUmodule module, const char * name) {
    const entry e("cuModuleGetFunction");
    if (e.result != 0) {
        return e.result;
    }
    const auto found = module->functions.find(name);
    if (found == module->functions.end()) {
        return CUDA_ERROR_NOT_FOUND;
    }
    *out = &found->second;
    return 0;
}

FAKE CUresult cuFuncGetParamInfo(CUfunction f, size_t index, size_t * offset, size_t * size) {
    const entry e("cuFuncGetParamInfo");
    if (e.result != 0 || index >= f->param_sizes.size()) {
        return e.result != 0 ? e.result : CUDA_ERROR_INVALID_VALUE;
    }
    *offset = index * 8;
    *size   = f->param_sizes[index];
    return 0;
}

FAKE CUresult cuFuncGetAttribute(int * value, CUfunction_attribute which, CUfunction f) {
    const entry e("cuFuncGetAttribute");
    switch (which) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:         *value = f->max_threads; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:             *value = f->static_shared; break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:              *value = 16; break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS:                      *value = 32; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION:                   *value = f->architecture; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = f->max_dynamic_shared; break;
        default:                                              return INVALID_VALUE;
    }
    return e.result;
}

FAKE CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute which, int value) {
    const entry e("cuFuncSetAttribute");
    if (e.result == 0 && which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
        f->max_dynamic_shared = value;
    }
    return e.result;
}

namespace {

CUresult launch_kernel(CUresult planned, CUfunction f, const CUlaunchConfig & c, void ** args) {
    if (planned != 0) {
        return planned;
    }
    const auto     body    = bodies().find(f->name);
    const unsigned threads = c.blockDimX * c.blockDimY * c.blockDimZ;
    if (f->module->context != current_context() || body == bodies().end() || c.gridDimX * c.gridDimY * c.gridDimZ * threads == 0 ||
        threads > static_cast<unsigned>(f->max_threads) || c.sharedMemBytes > static_cast<unsigned>(f->max_dynamic_shared)) {
        fake_cuda_note_violation("the driver would have refused a launch");
        return INVALID_VALUE;
    }
    auto l = std::make_unique<launched>(
        launched{f->module->code,
                 body->second,
                 {},
                 {nullptr, {c.gridDimX, c.gridDimY, c.gridDimZ}, {c.blockDimX, c.blockDimY, c.blockDimZ}, c.sharedMemBytes}});
    for (size_t i = 0; i < f->param_sizes.size(); ++i) {
        l->values.emplace_back(static_cast<const char *>(args[i]), f->param_sizes[i]);
    }
    return fake_cuda_launch(c.hStream, run_launched, l.release(), [](void * p) { delete static_cast<launched *>(p); }, c.numAttrs == 1);
}

} // namespace

FAKE CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                             CUstream stream, void ** args, void **) {
    const entry e("cuLaunchKernel");
    return launch_kernel(e.result, f, {gx, gy, gz, bx, by, bz, shared, stream, nullptr, 0}, args);
}

FAKE CUresult cuLaunchKernelEx(const CUlaunchConfig * config, CUfunction f, void ** args, void **) {
    const entry e("cuLaunchKernelEx");
    if (f->architecture < 90 || config->numAttrs != 1 || config->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
        config->attrs->value.programmaticStreamSerializationAllowed != 1) {
        fake_cuda_note_violation("a kernel begins early that cannot wait");
    }
    return launch_kernel(e.result, f, *config, args);
}
