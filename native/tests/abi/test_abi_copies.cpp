// Which ggml of a process is taken, and that there is only one: each case in a process of its own, where what it loads is gone with it.

#include "abi/outcome.h"
#include "support/scratch_directory.h"

#include <doctest/doctest.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

using namespace ggml_ext;
using namespace ggml_ext::test;
namespace fs = std::filesystem;

namespace {

// what it returns in a process of its own
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

TEST_CASE("COMPAT-1: without a path, a ggml that is not visible in the process is not found") {
    stock(); // loaded, but for itself alone
    const outcome o = load(nullptr, nullptr);
    CHECK(o.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(o.error, "what is visible in this process (no path was given) is not libggml-base"));
}

TEST_CASE("COMPAT-1: without a path, a ggml that is visible in the process is taken") {
    const std::string said = in_child([] {
        dlopen(stock().base_path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
        const outcome o = load(nullptr, nullptr);
        return describe(o) + o.g.base_path;
    });
    CHECK(said == stock().base_path);
}

TEST_CASE("COMPAT-1: two copies of libggml-base in one process are refused, and both are named") {
    const scratch_directory scratch;
    const auto &            s    = stock();
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
