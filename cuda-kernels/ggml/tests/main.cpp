// Without a CUDA device of ggml's the run is a skip (77), never a pass.

#define DOCTEST_CONFIG_IMPLEMENT
#include "fixture.h"

#include <cstdio>

int main(int argc, char ** argv) {
    if (std::getenv("GGML_EXT_TEST_GGML_DIR") == nullptr) {
        std::printf("skipped: GGML_EXT_TEST_GGML_DIR names no folder with a ggml and its CUDA backend\n");
        return 77;
    }
    if (ggml_ext::test::find_gpu() == nullptr) {
        std::printf("skipped: this ggml has no CUDA device (no GPU, no driver, or no CUDA backend)\n");
        return 77;
    }
    return doctest::Context(argc, argv).run();
}
