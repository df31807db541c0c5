// Stock ggml against the kernel library, in one run and in turns: products of F32 weights, and the rows of an encoder.
//   kernels-ggml-bench [threads]      environment: GGML_EXT_TEST_GGML_DIR, the folder of the stock ggml
// Two backends of one device share the graph's data. The stock side's plan was made while the library was switched off.

#include "support/graph_ops.h"
#include "support/stock_ggml.h"

#include "ggml-ext.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

using namespace ggml_ext;
using namespace ggml_ext::test;

extern "C" int ggml_ext_kernel_library_init(ggml_backend_device * device, ggml_ext_add_registration add, void * context);

namespace {

constexpr int F32 = 0;

void need(bool ok, const char * what) {
    if (!ok) {
        std::fprintf(stderr, "%s: %s\n", what, ggml_ext_last_error());
        std::exit(1);
    }
}

double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<ggml_ext_registration *> registered;

void switch_library(bool on) {
    for (ggml_ext_registration * r : registered) {
        ggml_ext_set_enabled(r, on); // refused for operators, which have no switch
    }
}

// One graph on a backend of its own, allocated and warm.
class side {
public:
    side(int n_threads, const std::function<ggml_tensor *(ggml_context *)> & make) : g_(stock()) {
        backend_      = g_.base.ggml_backend_dev_init(g_.cpu, nullptr);
        auto * reg    = g_.base.ggml_backend_dev_backend_reg(g_.cpu);
        reinterpret_cast<void (*)(ggml_backend *, int)>(g_.base.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads"))(backend_, n_threads);
        ctx_   = g_.base.ggml_init({1 << 20, nullptr, true});
        graph_ = g_.base.ggml_new_graph_custom(ctx_, 64, false);
        sched_ = g_.base.ggml_backend_sched_new(&backend_, nullptr, 1, 256, false, true);
        leaves_ = g_.base.ggml_init({1 << 20, nullptr, true});
        ggml_tensor * out = make(leaves_); // leaves and nodes in one context: only leaves get memory here
        (void) out;
    }

private:
    const stock_ggml & g_;
    ggml_backend *     backend_;
    ggml_context *     ctx_;
    ggml_context *     leaves_;
    ggml_cgraph *      graph_;
    ggml_backend_sched * sched_;
};

} // namespace
