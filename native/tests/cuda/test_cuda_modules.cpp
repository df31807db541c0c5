// AOT-1: modules are made from cubins, fat binaries, PTX and source text, on the fake driver and its compiler.

#include "core/scale_add.h" // stats_of
#include "cuda/library_names.h"
#include "cuda/module.h"
#include "cuda/module_fixture.h"
#include "cuda/nvrtc.h"
#include "fake_nvrtc.h"

#include <pthread.h>

#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

int compile(const char * text, std::vector<const char *> options, ggml_ext_cuda_module *& out, const char * name = "swish.cu") {
    const ggml_ext_cuda_source source{sizeof(source), text, name, static_cast<int32_t>(options.size()), options.data()};
    return ggml_ext_cuda_module_compile(one_cuda(), &source, &out);
}

// must not reach the driver
void check_refused(const std::string & image, const char * part) {
    CAPTURE(image.size());
    const driver_calls     loaded("cuModuleLoadDataEx");
    ggml_ext_cuda_module * module = nullptr;
    CHECK(ggml_ext_cuda_module_load(one_cuda(), image.data(), image.size(), &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message(part);
    CHECK(module == nullptr);
    CHECK(loaded.count() == 0);
}

} // namespace

TEST_CASE("AOT-1: a kernel from a cubin, a fat binary, PTX or source text computes in a graph, first, recorded and replayed") {
    const int              before = fake_cuda_live();
    ggml_ext_cuda_module * module = nullptr;
    SUBCASE("cubin") { module = load_module(one_cuda(), fake::cubin(SWISH_ENTRY)); }
    SUBCASE("fat binary") { module = load_module(one_cuda(), fake::fat_binary(SWISH_ENTRY)); }
    SUBCASE("PTX") { module = load_module(one_cuda(), fake::ptx(SWISH_ENTRY)); }
    SUBCASE("PTX with its zero") { module = load_module(one_cuda(), fake::ptx(SWISH_ENTRY) + '\0'); }
    SUBCASE("source text") { REQUIRE_OK(compile(SWISH_TEXT, {}, module)); }
    {
        registered_module_swish r(one_cuda(), module, REUSABLE);
        cuda_session            s(one_cuda());
        cuda_graph::options     o;
        o.n_ours = 3;
        cuda_graph         graph(o);
        const driver_calls recorded("cuStreamBeginCapture");
        s.allocate(graph);
        for (int i = 0; i < 5; ++i) {
            s.run(graph, i);
        }
        CHECK(r.swish.calls == 6);
        CHECK(recorded.count() == 1);
        CHECK(stats_of(s.backend).n_replayed == 4);
    }
    CHECK(fake_cuda_live() == before + 1);
    CHECK_OK(ggml_ext_cuda_module_free(module));
    CHECK(fake_cuda_live() == before);
    CHECK(std::string(fake_cuda_violations()) == "");
}

TEST_CASE("AOT-1: bytes that are no whole image are refused before the driver reads them") {
    ggml_ext_cuda_module * module = nullptr;
    CHECK(ggml_ext_cuda_module_load(one_cuda(), nullptr, 16, &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("image is NULL");
    check_refused("", "size is 0");
    check_refused("hello", "they begin with 0x68 0x65 0x6c 0x6c 0x6f ('hello')");
    check_refused(SWISH_TEXT, "no PTX text (it has no .version)");
    check_refused(std::string(".version 8.0\n\0.entry swish -", 28), "a zero at byte 13");
    for (const std::string & image : {fake::cubin(SWISH_ENTRY), fake::fat_binary(SWISH_ENTRY)}) {
        for (size_t n = 4; n < image.size(); ++n) { // heap memory of exactly that size
            check_refused(image.substr(0, n), image[1] == 'E' ? "cubin" : "fat binary");
        }
    }
    const auto cubin_with = [](auto change) {
        std::string image = fake::cubin(SWISH_ENTRY);
        Elf64_Ehdr  elf;
        std::memcpy(&elf, image.data(), sizeof(elf));
        Elf64_Shdr section;
        std::memcpy(&section, image.data() + elf.e_shoff + sizeof(section), sizeof(section));
        const uint64_t at = elf.e_shoff;
        change(elf, section);
        std::memcpy(image.data() + at + sizeof(section), &section, sizeof(section));
        std::memcpy(image.data(), &elf, sizeof(elf));
        return image;
    };
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_machine = EM_X86_64; }), "machine 62, expected 190");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_ident[EI_CLASS] = ELFCLASS32; }), "an ELF file");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_shentsize = 1; }), "3 sections of 1 bytes");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_shnum = 0; }), "0 sections");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_shstrndx = 3; }), "names in section 3");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) { e.e_shoff = UINT64_MAX - 8; }), "section 0");
    check_refused(cubin_with([](Elf64_Ehdr &, Elf64_Shdr & s) { s.sh_offset = UINT64_MAX - 8; }), "section 1");
    check_refused(cubin_with([](Elf64_Ehdr &, Elf64_Shdr & s) { s.sh_size = UINT64_MAX; }), "section 1");
    check_refused(cubin_with([](Elf64_Ehdr & e, Elf64_Shdr &) {
                      e.e_phnum     = 1;
                      e.e_phentsize = sizeof(Elf64_Phdr);
                      e.e_phoff     = UINT64_MAX - 8;
                  }),
                  "segment 0");
    std::string            fat = fake::fat_binary(SWISH_ENTRY);
    cuda::fat_binary_entry entry;
    std::memcpy(&entry, fat.data() + 16, sizeof(entry));
    entry.size = UINT64_MAX - 16;
    std::memcpy(fat.data() + 16, &entry, sizeof(entry));
    check_refused(fat, "entry at byte 16");
    check_refused(fake::bytes_of(cuda::fat_binary_header{cuda::fat_binary_header::MAGIC, 1, 16, 0}), "holds no code");
}

TEST_CASE("AOT-1: what the driver says of an image reaches the caller") {
    const int              before = fake_cuda_live();
    ggml_ext_cuda_module * module = nullptr;
    const std::string      ptx    = fake::ptx("syntax error");
    CHECK(ggml_ext_cuda_module_load(one_cuda(), ptx.data(), ptx.size(), &module) == GGML_EXT_STATUS_FAILED);
    check_message("sm_90");
    check_message("(218)");
    check_message("line 3; fatal: a syntax error");
    fake_cuda_fail_next("cuModuleLoadDataEx", 209);
    const std::string cubin = fake::cubin(SWISH_ENTRY);
    CHECK(ggml_ext_cuda_module_load(one_cuda(), cubin.data(), cubin.size(), &module) == GGML_EXT_STATUS_FAILED);
    check_message("(209)");
    CHECK(module == nullptr);
    CHECK(fake_cuda_live() == before);
}

TEST_CASE("AOT-1: a failed compilation's message holds the log; warnings go to the log") {
    ggml_ext_cuda_module * module = nullptr;
    CHECK(compile("// one\n#error too bad\n", {}, module) == GGML_EXT_STATUS_FAILED);
    check_message("swish.cu(2): error too bad");
    check_message("NVRTC 13.0");
    CHECK(compile("#error x\n", {}, module, nullptr) == GGML_EXT_STATUS_FAILED);
    check_message("default_program(1)");
    CHECK(compile(SWISH_TEXT, {"+fast"}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("unrecognized option +fast");
    CHECK(module == nullptr);

    std::string lines;
    ggml_ext_log_set(
        [](int32_t level, const char * text, void * all) {
            *static_cast<std::string *>(all) += std::to_string(level) + " " + text;
        },
        &lines);
    const int status = compile((std::string("#warning take care\n") + SWISH_TEXT).c_str(), {}, module);
    ggml_ext_log_set(nullptr, nullptr);
    REQUIRE_OK(status);
    CHECK(lines == "2 swish.cu: swish.cu(1): warning take care\n");
    CHECK_OK(ggml_ext_cuda_module_free(module));
}

TEST_CASE("AOT-1: source text is compiled for the device's own architecture, and options are passed on") {
    ggml_ext_cuda_module * module = nullptr;
    REQUIRE_OK(compile(SWISH_TEXT, {"--use_fast_math", "--define-macro=N=4"}, module));
    CHECK(std::string(fake_nvrtc_options()) == "--use_fast_math --define-macro=N=4 --gpu-architecture=sm_90a ");
    CHECK_OK(ggml_ext_cuda_module_free(module));
    module = nullptr;
    CHECK(compile(SWISH_TEXT, {"--gpu-architecture=sm_80"}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("--gpu-architecture=sm_80");
    CHECK(compile(SWISH_TEXT, {"-arch", "sm_80"}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(compile(SWISH_TEXT, {"--dlink-time-opt"}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("something else than machine code");
    CHECK(compile(SWISH_TEXT, {nullptr}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("options[0] is NULL");
    CHECK(compile(nullptr, {}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(compile("", {}, module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    ggml_ext_cuda_source source{sizeof(source), SWISH_TEXT, nullptr, 2, nullptr};
    CHECK(ggml_ext_cuda_module_compile(one_cuda(), &source, &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("n_options is 2");
    source.struct_size = 0;
    CHECK(ggml_ext_cuda_module_compile(one_cuda(), &source, &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    source = {offsetof(ggml_ext_cuda_source, n_options), SWISH_TEXT, nullptr, 7, nullptr}; // an older header, without options
    REQUIRE_OK(ggml_ext_cuda_module_compile(one_cuda(), &source, &module));
    CHECK_OK(ggml_ext_cuda_module_free(module));
}

TEST_CASE("AOT-1: text that is nested deeply compiles on a thread with a stack of one MiB, as those of a JVM") {
    one_cuda();
    static int     status = -1;
    pthread_attr_t attributes;
    pthread_t      thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    REQUIRE(pthread_create(
                &thread, &attributes,
                [](void *) -> void * {
                    ggml_ext_cuda_module * module = nullptr;
                    status                        = compile((std::string("// nested deeply\n") + SWISH_TEXT).c_str(), {}, module);
                    return status == GGML_EXT_STATUS_SUCCESS && ggml_ext_cuda_module_free(module) == GGML_EXT_STATUS_SUCCESS ? &status : nullptr;
                },
                nullptr) == 0);
    void * result = nullptr;
    pthread_join(thread, &result);
    pthread_attr_destroy(&attributes);
    CHECK(status == GGML_EXT_STATUS_SUCCESS);
    CHECK(result == &status);
}

TEST_CASE("AOT-1: a GPU newer than NVRTC gets PTX of the nearest architecture before it; an older one is refused by name") {
    std::shared_ptr<const cuda::nvrtc> lib;
    REQUIRE_OK(cuda::open_nvrtc(cuda::nvrtc_names(13000), lib));
    std::string        image;
    const cuda::source source{SWISH_TEXT, nullptr, {}};
    REQUIRE_OK(cuda::compile(*lib, source, 12, 0, image));
    CHECK(std::string(fake_nvrtc_options()) == "--gpu-architecture=compute_90 ");
    CHECK(image == fake::ptx(".entry swish 8,8,4,8 1024 0\n") + '\0');
    REQUIRE_OK(cuda::compile(*lib, source, 8, 6, image));
    CHECK(std::string(fake_nvrtc_options()) == "--gpu-architecture=compute_80 ");
    REQUIRE_OK(cuda::compile(*lib, source, 8, 0, image));
    CHECK(std::string(fake_nvrtc_options()) == "--gpu-architecture=sm_80 ");
    CHECK(image == fake::cubin(".entry swish 8,8,4,8 1024 0\n"));
    CHECK(cuda::compile(*lib, source, 7, 0, image) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("NVRTC 13.0 does not compile for this GPU, sm_70, only for sm_75, sm_80, sm_90");
}

TEST_CASE("AOT-1: without NVRTC, or with one of before CUDA 12, source text is refused and says so") {
    std::shared_ptr<const cuda::nvrtc> lib;
    CHECK(cuda::open_nvrtc({"libno_such_nvrtc.so.1", "libno_such_nvrtc.so"}, lib) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("libno_such_nvrtc.so.1, libno_such_nvrtc.so");
    CHECK(cuda::open_nvrtc(cuda::DRIVER_NAMES, lib) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("this NVRTC has no nvrtcVersion");
    CHECK((lib == nullptr));
    CHECK(std::string(*cuda::nvrtc_names(13010).begin()).find("13") != std::string::npos);
    CHECK(std::string(*cuda::nvrtc_names(12080).begin()).find("12") != std::string::npos);
}

TEST_CASE("AOT-1: a driver that does not know the parameters of kernels makes no modules, and says what is needed") {
    const std::shared_ptr<const cuda::driver> loaded = cuda::load_driver();
    REQUIRE((loaded != nullptr));
    const auto old          = std::const_pointer_cast<cuda::driver>(loaded);
    old->cuFuncGetParamInfo = nullptr;
    old->version            = 12030;
    auto d                  = std::make_shared<cuda::device>();
    d->cu                   = old;
    std::unique_ptr<cuda::module> module;
    CHECK(cuda::module::load(d, fake::cubin(SWISH_ENTRY), module) == GGML_EXT_STATUS_UNSUPPORTED);
    check_message("CUDA 12.4 or later");
    check_message("CUDA 12.3");
}

TEST_CASE("AOT-1: only an attached CUDA device has modules") {
    const std::string      image  = fake::cubin(SWISH_ENTRY);
    ggml_ext_cuda_module * module = nullptr;
    cuda_device_options    second;
    second.bus                  = "0000:02:00.0";
    ggml_backend_device * other = new_cuda_device(second);
    one_cuda();
    CHECK(ggml_ext_cuda_module_load(other, image.data(), image.size(), &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("is not attached");
    CHECK(ggml_ext_cuda_module_load(stock().cpu, image.data(), image.size(), &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("is no CUDA device");
    CHECK(ggml_ext_cuda_module_load(nullptr, image.data(), image.size(), &module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_cuda_module_load(one_cuda(), image.data(), image.size(), nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("out is NULL");
    REQUIRE_OK(ggml_ext_attach_device(other));
    REQUIRE_OK(ggml_ext_cuda_module_load(other, image.data(), image.size(), &module));
    CHECK_OK(ggml_ext_detach_device(other)); // a module needs no attached device to be freed
    CHECK_OK(ggml_ext_cuda_module_free(module));
    CHECK(std::string(fake_cuda_violations()) == "");
}

TEST_CASE("AOT-1: a kernel's parameters and limits are told; a stale handle and an unknown name are errors") {
    ggml_ext_cuda_module *      module = load_module(one_cuda(), fake::cubin(std::string(SWISH_ENTRY) + ".entry none - 1024 0\n"));
    ggml_ext_cuda_function_info info{};
    info.struct_size = sizeof(info);
    REQUIRE_OK(ggml_ext_cuda_module_get_function(module, "swish", &info));
    REQUIRE(info.n_params == 4);
    CHECK(std::vector<size_t>(info.param_sizes, info.param_sizes + 4) == std::vector<size_t>{8, 8, 4, 8});
    CHECK(info.max_threads_per_block == static_cast<int32_t>(SWISH_MAX_THREADS));
    CHECK(info.n_registers == 32);
    CHECK(info.static_shared_memory == SWISH_STATIC_BYTES);
    CHECK(info.local_memory == 16);
    const size_t * first = info.param_sizes;
    REQUIRE_OK(ggml_ext_cuda_module_get_function(module, "none", &info));
    CHECK(info.n_params == 0);
    CHECK(first[2] == 4); // stays where it is
    CHECK(ggml_ext_cuda_module_get_function(module, "Swish", &info) == GGML_EXT_STATUS_NOT_FOUND);
    check_message("no kernel \"Swish\"");
    check_message("extern \"C\"");
    CHECK(ggml_ext_cuda_module_get_function(module, nullptr, &info) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_cuda_module_get_function(module, "swish", nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_cuda_module_get_function(nullptr, "swish", &info) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK_OK(ggml_ext_cuda_module_free(module));
    CHECK(ggml_ext_cuda_module_get_function(module, "swish", &info) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    check_message("was freed");
    CHECK(ggml_ext_cuda_module_free(module) == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(ggml_ext_cuda_module_free(nullptr) == GGML_EXT_STATUS_INVALID_ARGUMENT);
}

TEST_CASE("AOT-1: making and freeing a module leaves the thread's current device as it was") {
    one_cuda();
    std::thread([] {
        ggml_ext_cuda_module *      module = load_module(one_cuda(), fake::cubin(SWISH_ENTRY));
        ggml_ext_cuda_function_info info{};
        info.struct_size = sizeof(info);
        CHECK_OK(ggml_ext_cuda_module_get_function(module, "swish", &info));
        CHECK_OK(ggml_ext_cuda_module_free(module));
        CUstream stream = nullptr;
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 201); // there is none
    }).join();
    CHECK(std::string(fake_cuda_violations()) == "");
}
