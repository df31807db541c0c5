// What is no ggml, or one that ggml-ext does not know, is refused with the reason, and stays as it was.

#include "abi/ggml.h"
#include "support/stock_ggml.h"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

using namespace ggml_ext;
namespace fs = std::filesystem;

namespace {

struct outcome {
    int         status;
    std::string error;
    abi::ggml   g;
};

outcome load(const char * base_path, const char * ggml_path) {
    outcome                    o;
    const ggml_ext_load_params params = {sizeof(params), base_path, ggml_path};
    o.status                          = abi::load(params, o.g, o.error);
    return o;
}

outcome load_fake(const std::string & name) {
    test::stock(); // the fakes bind to the libggml-base that is there
    return load((std::string(GGML_EXT_TEST_FAKES) + "/fake_" + name + ".so").c_str(), nullptr);
}

bool untouched(const abi::ggml & g) { return g.n_ops() == 0 && g.fn.ggml_init == nullptr && g.base_path.empty() && !g.has_cgraph; }

bool contains(const std::string & text, const std::string & part) { return text.find(part) != std::string::npos; }

struct scratch_directory {
    scratch_directory() {
        std::string name = (fs::temp_directory_path() / "ggml-ext-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~scratch_directory() { fs::remove_all(path); }

    fs::path path;
};

// Runs it in a process of its own, where what it loads is gone with it; gives what it returns.
std::string in_child(const std::function<std::string()> & work) {
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        const std::string text = work();
        _exit(write(pipe_ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    close(pipe_ends[1]);
    std::string text;
    char        buffer[512];
    for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
        text.append(buffer, static_cast<size_t>(n));
    }
    close(pipe_ends[0]);
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0);
    return text;
}

std::string describe(const outcome & o) { return std::string(o.status == GGML_EXT_STATUS_INCOMPATIBLE ? "INCOMPATIBLE " : "") + o.error; }

} // namespace

TEST_CASE("COMPAT-1: a path that cannot be loaded is refused with the loader's words") {
    const scratch_directory scratch;
    const fs::path          text = scratch.path / "libtext.so";
    std::ofstream(text) << "this is no library\n";

    const outcome missing = load("/nonexistent/libggml-base.so", nullptr);
    CHECK(missing.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(missing.error, "cannot load libggml-base from '/nonexistent/libggml-base.so': "));
    CHECK(contains(missing.error, "No such file or directory"));
    CHECK(untouched(missing.g));

    const outcome no_library = load(text.c_str(), nullptr);
    CHECK(no_library.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(no_library.error, text.string()));
    CHECK(contains(no_library.error, "file too short"));

    const outcome directory = load(scratch.path.c_str(), nullptr);
    CHECK(directory.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(directory.error, scratch.path.string()));

    const outcome no_registry = load(test::stock().base_path.c_str(), text.c_str());
    CHECK(no_registry.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(no_registry.error, "cannot load libggml from '" + text.string()));
    CHECK(untouched(no_registry.g));
}

TEST_CASE("COMPAT-1: a library that is no ggml is refused, and what it lacks is named") {
    const outcome none = load_fake("no_ggml");
    CHECK(none.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(none.error, "fake_no_ggml.so' is not libggml-base"));
    CHECK(untouched(none.g));

    const outcome partial = load_fake("partial_ggml");
    CHECK(partial.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(partial.error, "it lacks ggml_used_mem, ggml_get_mem_size, "));
    CHECK(contains(partial.error, " more"));
    CHECK(untouched(partial.g));

    const outcome no_registry = load(test::stock().base_path.c_str(), test::stock().base_path.c_str());
    CHECK(no_registry.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(no_registry.error, "is not libggml: it has no ggml_backend_reg_count"));
}

TEST_CASE("COMPAT-1: without a path, a ggml that is not visible in the process is not found") {
    test::stock(); // loaded, but for itself alone
    const outcome o = load(nullptr, nullptr);
    CHECK(o.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(o.error, "what is visible in this process (no path was given) is not libggml-base"));
}

TEST_CASE("COMPAT-1: without a path, a ggml that is visible in the process is taken") {
    const std::string said = in_child([] {
        dlopen(test::stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
        const outcome o = load(nullptr, nullptr);
        return describe(o) + o.g.base_path;
    });
    CHECK(said == test::stock().base_path);
}

TEST_CASE("COMPAT-1: two copies of libggml-base in one process are refused, and both are named") {
    const scratch_directory scratch;
    const auto &            s    = test::stock();
    const std::string       copy = (scratch.path / "libggml-base-copy.so").string();
    fs::copy_file(s.base_path, copy);

    const std::string beside = in_child([&] {
        dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
        return describe(load(s.base_path.c_str(), s.ggml_path.c_str()));
    });
    CHECK(contains(beside, "INCOMPATIBLE there are two copies of libggml-base in this process"));
    CHECK(contains(beside, copy));
    CHECK(contains(beside, s.base_path));

    const std::string crossed = in_child([&] { return describe(load(copy.c_str(), s.ggml_path.c_str())); });
    CHECK(contains(crossed, "INCOMPATIBLE '" + s.ggml_path + "' is bound to " + s.base_path + ", not to " + copy));

    CHECK(load(s.base_path.c_str(), s.ggml_path.c_str()).status == GGML_EXT_STATUS_SUCCESS);
}

TEST_CASE("COMPAT-1: a ggml with other tensors, other operations or other tables is refused") {
    struct expectation {
        const char * fake;
        const char * message;
    };
    for (const expectation & e : {
             expectation{"tensor_overhead", "struct ggml_tensor: the distance of consecutive tensors is not ggml_tensor_overhead()"},
             expectation{"op_names", "struct ggml_tensor: ggml_add does not make the operation named ADD"},
             expectation{"device_table",
                         "backend interface: ggml_backend_dev_supports_op called 0 entries of the table, expected 1"},
         }) {
        CAPTURE(e.fake);
        const outcome o = load_fake(e.fake);
        CHECK(o.status == GGML_EXT_STATUS_INCOMPATIBLE);
        CHECK_MESSAGE(contains(o.error, e.message), o.error);
        CHECK(contains(o.error, "it stays unpatched"));
        CHECK(untouched(o.g));
    }
}

TEST_CASE("COMPAT-1: a ggml with other graphs is served without planning, and the note says why") {
    const outcome o = load_fake("graph_layout");
    CHECK_MESSAGE(o.status == GGML_EXT_STATUS_SUCCESS, o.error);
    CHECK_FALSE(o.g.has_cgraph);
    CHECK(o.g.note == "struct ggml_cgraph: n_nodes; no planning, no fusion");
    CHECK(o.g.n_ops() > 80);
    CHECK(o.g.slot.dev_supports_op >= 0);

    abi::ggml      g       = o.g;
    ggml_backend * backend = g.fn.ggml_backend_dev_init(test::stock().cpu, nullptr);
    abi::probe_graph_optimize(g, test::stock().cpu, backend);
    g.fn.ggml_backend_free(backend);
    CHECK_FALSE(g.graph_optimize_probed);
    CHECK(g.note == o.g.note);
}
