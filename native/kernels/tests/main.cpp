// Runs every family's tests on the instruction set that GGML_EXT_CPU_ISA names. Where the machine lacks it
// the run is a skip (77), never a pass on another one.

#define DOCTEST_CONFIG_IMPLEMENT
#include "ggml-ext-kernels/common.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char ** argv) {
    const char * wanted = std::getenv("GGML_EXT_CPU_ISA");
    if (wanted != nullptr && std::strcmp(wanted, ggml_ext_cpu_isa()) != 0) {
        std::printf("skipped: this machine cannot run %s, only up to %s\n", wanted, ggml_ext_cpu_isa());
        return 77;
    }
    std::printf("kernels: %s\n", ggml_ext_cpu_isa());
    return doctest::Context(argc, argv).run();
}
