// What is no ggml, or one that ggml-ext does not know, is refused with the reason, and stays as it was.

#include "abi/outcome.h"
#include "support/scratch_directory.h"

#include <doctest/doctest.h>

#include <fstream>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

outcome load_fake(const std::string & name) {
    stock(); // the fakes bind to the libggml-base that is there
    return load((std::string(GGML_EXT_TEST_FAKES) + "/fake_" + name + ".so").c_str(), nullptr);
}

#if defined(_WIN32)
constexpr const char * NO_SUCH_FILE = "(error 126)";
constexpr const char * NO_LIBRARY   = "(error 193)";
#else
constexpr const char * NO_SUCH_FILE = "No such file or directory";
constexpr const char * NO_LIBRARY   = "file too short";
#endif

bool untouched(const abi::ggml & g) { return g.n_ops() == 0 && g.fn.ggml_init == nullptr && g.base_path.empty() && !g.has_cgraph; }

} // namespace

TEST_CASE("COMPAT-1: a path that cannot be loaded is refused with the loader's words") {
    const scratch_directory scratch;
    const std::string       text = (scratch.path / "libtext.so").string();
    std::ofstream(text) << "this is no library\n";

    const outcome missing = load("/nonexistent/libggml-base.so", nullptr);
    CHECK(missing.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(missing.error, "cannot load libggml-base from '/nonexistent/libggml-base.so': "));
    CHECK(contains(missing.error, NO_SUCH_FILE));
    CHECK(untouched(missing.g));

    const outcome no_library = load(text.c_str(), nullptr);
    CHECK(no_library.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(no_library.error, text));
    CHECK(contains(no_library.error, NO_LIBRARY));

    const outcome directory = load(scratch.path.string().c_str(), nullptr);
    CHECK(directory.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(directory.error, scratch.path.string()));

    const outcome no_registry = load(stock().base_path.c_str(), text.c_str());
    CHECK(no_registry.status == GGML_EXT_STATUS_INVALID_ARGUMENT);
    CHECK(contains(no_registry.error, "cannot load libggml from '" + text));
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

    const outcome no_registry = load(stock().base_path.c_str(), stock().base_path.c_str());
    CHECK(no_registry.status == GGML_EXT_STATUS_INCOMPATIBLE);
    CHECK(contains(no_registry.error, "is not libggml: it has no ggml_backend_reg_count"));
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
    ggml_backend * backend = g.fn.ggml_backend_dev_init(stock().cpu, nullptr);
    abi::probe_graph_optimize(g, stock().cpu, backend);
    g.fn.ggml_backend_free(backend);
    CHECK_FALSE(g.graph_optimize_probed);
    CHECK(g.note == o.g.note);
}
