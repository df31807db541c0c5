// Which ggml of a process on Windows is taken, and that there is only one.

#include "abi/outcome.h"

#include <doctest/doctest.h>

#include <dlfcn.h>

using namespace ggml_ext;
using namespace ggml_ext::test;
namespace fs = std::filesystem;

TEST_CASE("COMPAT-1: without a path, the ggml of the process is taken, whoever loaded it") {
    const auto &  s = stock();
    const outcome o = load(nullptr, nullptr);
    CHECK_MESSAGE(o.status == GGML_EXT_STATUS_SUCCESS, o.error);
    CHECK(fs::equivalent(o.g.base_path, s.base_path));
}

TEST_CASE("COMPAT-1: two copies of ggml-base in one process are refused, and both are named, in letters beyond ASCII too") {
    const auto &   s      = stock();
    const fs::path folder = fs::path(GGML_EXT_TEST_FAKES) / fs::u8path("\u00fc\u4e2d");
    fs::remove_all(folder); // of an earlier run
    fs::create_directory(folder);
    fs::copy_file(s.base_path, folder / "ggml-base.dll");
    const std::string copy = (folder / "ggml-base.dll").u8string();
    REQUIRE(dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr); // stays: ggml does not start a second time at one address

    for (const std::string & base : {s.base_path, copy}) {
        CAPTURE(base);
        const outcome o = load(base.c_str(), s.ggml_path.c_str());
        CHECK(o.status == GGML_EXT_STATUS_INCOMPATIBLE);
        CHECK_MESSAGE(contains(o.error, "there are two copies of libggml-base in this process"), o.error);
        CHECK_MESSAGE(contains(o.error, "\u00fc\u4e2d\\ggml-base.dll"), o.error);
        CHECK_MESSAGE(contains(o.error, fs::absolute(s.base_path).make_preferred().u8string()), o.error);
    }
}
