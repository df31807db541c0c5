#pragma once
// A CPU backend of one thread that computes each node by itself.

#include "support/stock_ggml.h"

#include <cstdlib>

namespace ggml_ext::test {

class cpu_backend {
public:
    cpu_backend() {
        // Neighbours that ggml fuses by itself leave an intermediate unwritten, and moves change who is a neighbour.
        // ggml reads this once, when its first CPU backend starts.
        setenv("GGML_CPU_DISABLE_FUSION", "1", 1);
        backend_   = stock().base.ggml_backend_dev_init(stock().cpu, nullptr);
        auto * reg = stock().base.ggml_backend_dev_backend_reg(stock().cpu);
        auto * set = stock().base.ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
        reinterpret_cast<void (*)(ggml_backend *, int)>(set)(backend_, 1);
    }
    cpu_backend(const cpu_backend &)             = delete;
    cpu_backend & operator=(const cpu_backend &) = delete;
    ~cpu_backend() { stock().base.ggml_backend_free(backend_); }

    ggml_backend * get() const { return backend_; }

private:
    ggml_backend * backend_;
};

} // namespace ggml_ext::test
