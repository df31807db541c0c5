// COMPAT-2: with nothing registered, random graphs compute the same bytes as in a process that never loaded the layer. Each process
// is forked before ggml is loaded, and writes what its graphs computed to a file.

#include "differential/random_run.h"
#include "support/second_device.h"

#include <doctest/doctest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

constexpr uint64_t FIRST_SEED = 7000;
constexpr int      N_GRAPHS   = 300;

void attach() {
    const ggml_ext_load_params params = stock().load_params();
    if (ggml_ext_load(&params) != GGML_EXT_STATUS_SUCCESS || ggml_ext_attach_device(stock().cpu) != GGML_EXT_STATUS_SUCCESS ||
        ggml_ext_attach_device(second_device()) != GGML_EXT_STATUS_SUCCESS) {
        std::fprintf(stderr, "%s\n", ggml_ext_last_error());
        _exit(3);
    }
}

void compute_graph(uint64_t seed, std::FILE * out) {
    std::mt19937_64     random(seed);
    random_graph_params params;
    params.seed    = seed;
    params.n_nodes = 4 + static_cast<int>(random() % 397);

    run_params run;
    run.seed = seed;
    run.two  = random() % 3 != 0;
    set_second_device_choice(random());
    scheduled          scheduled(run); // through the devices' own functions, which attaching replaces
    const random_graph graph(params, scheduled.backends().back());
    scheduled.allocate(graph);
    for (const bool callback : {false, true, false}) {
        scheduled.set_callback(callback);
        const std::string bytes = scheduled.compute(graph);
        if (std::fwrite(bytes.data(), 1, bytes.size(), out) != bytes.size()) {
            _exit(4);
        }
    }
}

// what a process of its own computes
std::string computed(bool attached) {
    std::FILE * file  = std::tmpfile();
    const pid_t child = fork();
    if (child == 0) {
        second_device();
        if (attached) {
            attach();
        }
        for (uint64_t seed = FIRST_SEED; seed < FIRST_SEED + N_GRAPHS; ++seed) {
            compute_graph(seed, file);
        }
        std::fflush(file);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);

    std::string bytes(static_cast<size_t>(lseek(fileno(file), 0, SEEK_END)), '\0');
    REQUIRE(pread(fileno(file), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    std::fclose(file);
    return bytes;
}

} // namespace

TEST_CASE("COMPAT-2: with nothing registered an attached process computes the bytes of an unattached one") {
    const std::string unattached = computed(false);
    const std::string attached   = computed(true);
    MESSAGE(N_GRAPHS, " graphs on one and two devices, ", unattached.size(), " bytes");
    CHECK(unattached.size() > 1000 * N_GRAPHS);
    const bool same = unattached == attached;
    CHECK(same);
}
