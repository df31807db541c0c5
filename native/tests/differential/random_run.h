#pragma once
// Random graphs in a scheduler over one or two devices, allocated and computed again and again.

#include "differential/random_graph.h"

#include <vector>

namespace ggml_ext::test {

// What allocation and splitting change in a graph, to make it as new: order of nodes, sources, addresses.
class graph_state {
public:
    explicit graph_state(const random_graph & g);
    void restore() const;

private:
    ggml_cgraph *              graph_;
    std::vector<ggml_tensor *> nodes_;
    std::vector<ggml_tensor *> tensors_;
    std::vector<ggml_tensor>   contents_;
};

struct run_params {
    uint64_t seed      = 1;
    bool     extended  = true;  // backends of the attached devices; else native ones
    bool     two       = true;  // both devices
    int      n_threads = 1;
};

class scheduled {
public:
    explicit scheduled(const run_params & params);
    ~scheduled();
    scheduled(const scheduled &)             = delete;
    scheduled & operator=(const scheduled &) = delete;

    // Forgets what was allocated, and allocates. Some nodes, chosen by `seed` and not by this run, are tied to a device.
    void allocate(const random_graph & g);
    void reserve(const random_graph & g);
    void reset();

    // Fills inputs and state, computes, and returns the bytes of what runs must agree on.
    std::string compute(const random_graph & g);

    // Lets the scheduler compute ranges of nodes that end where a callback is asked to look.
    void set_callback(bool on);

    int                                 n_splits() const;
    const std::vector<ggml_backend *> & backends() const { return backends_; } // the CPU backend is the last

private:
    void tie_nodes(const random_graph & g);

    const run_params            params_;
    std::vector<ggml_backend *> backends_;
    ggml_backend_sched *        sched_ = nullptr;
};

} // namespace ggml_ext::test
