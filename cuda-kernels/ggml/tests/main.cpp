// Without a CUDA device of ggml's, or where no case can run, the run is a skip (77), never a pass.

#define DOCTEST_CONFIG_IMPLEMENT
#include "fixture.h"

#include <cstdio>

namespace {

unsigned n_cases = 0;

struct case_counter : doctest::IReporter {
    explicit case_counter(const doctest::ContextOptions &) {}
    void test_run_end(const doctest::TestRunStats & stats) override { n_cases = stats.numTestCasesPassingFilters; }

    void report_query(const doctest::QueryData &) override {}
    void test_run_start() override {}
    void test_case_start(const doctest::TestCaseData &) override {}
    void test_case_reenter(const doctest::TestCaseData &) override {}
    void test_case_end(const doctest::CurrentTestCaseStats &) override {}
    void test_case_exception(const doctest::TestCaseException &) override {}
    void subcase_start(const doctest::SubcaseSignature &) override {}
    void subcase_end() override {}
    void log_assert(const doctest::AssertData &) override {}
    void log_message(const doctest::MessageData &) override {}
    void test_case_skipped(const doctest::TestCaseData &) override {}
};

REGISTER_LISTENER("case_counter", 1, case_counter);

} // namespace

int main(int argc, char ** argv) {
    if (std::getenv("GGML_EXT_TEST_GGML_DIR") == nullptr) {
        std::printf("skipped: GGML_EXT_TEST_GGML_DIR names no folder with a ggml and its CUDA backend\n");
        return 77;
    }
    if (ggml_ext::test::find_gpu() == nullptr) {
        std::printf("skipped: this ggml has no CUDA device (no GPU, no driver, or no CUDA backend)\n");
        return 77;
    }
    const int failed = doctest::Context(argc, argv).run();
    for (const std::string & reason : ggml_ext::test::skips()) {
        std::printf("skipped: %s\n", reason.c_str());
    }
    return failed == 0 && n_cases > 0 && ggml_ext::test::skips().size() == n_cases ? 77 : failed;
}
