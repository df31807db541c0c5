#include "differential/random_run.h"

#include "support/second_device.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace ggml_ext::test {

namespace {

constexpr size_t SCHED_SIZE = 2048; // nodes and leafs

} // namespace

graph_state::graph_state(const random_graph & g) : graph_(g.graph()), nodes_(graph_->nodes, graph_->nodes + graph_->n_nodes) {
    tensors_ = nodes_;
    for (int i = 0; i < graph_->n_leafs; ++i) {
        tensors_.push_back(graph_->leafs[i]);
    }
    for (const ggml_tensor * t : tensors_) {
        contents_.push_back(*t);
    }
}

void graph_state::restore() const {
    std::copy(nodes_.begin(), nodes_.end(), graph_->nodes);
    for (size_t i = 0; i < tensors_.size(); ++i) {
        *tensors_[i] = contents_[i];
    }
}

scheduled::scheduled(const run_params & params) : params_(params) {
    const abi::functions & f = stock().base;
    if (params.extended) {
        if (params.two) {
            backends_.push_back(f.ggml_backend_dev_init(second_device(), nullptr));
        }
        backends_.push_back(f.ggml_backend_dev_init(stock().cpu, nullptr));
        for (ggml_backend * backend : backends_) {
            set_n_threads(backend, params.n_threads);
        }
    } else {
        if (params.two) {
            backends_.push_back(new_native_second_backend(params.n_threads));
        }
        backends_.push_back(new_native_cpu_backend(params.n_threads));
    }
    sched_ = f.ggml_backend_sched_new(backends_.data(), nullptr, static_cast<int>(backends_.size()), SCHED_SIZE, false, true);
}

scheduled::~scheduled() {
    stock().base.ggml_backend_sched_free(sched_);
    for (ggml_backend * backend : backends_) {
        stock().base.ggml_backend_free(backend);
    }
}

// Nodes that own their storage: a view lives where its storage is.
void scheduled::tie_nodes(const random_graph & g) {
    if (backends_.size() < 2) {
        return;
    }
    std::mt19937_64 random(params_.seed ^ 0x71e);
    const uint64_t  rarity = 2 + random() % 12;
    for (int i = 0; i < g.graph()->n_nodes; ++i) {
        ggml_tensor * node = g.graph()->nodes[i];
        if (random() % rarity == 0 && node->view_src == nullptr) {
            stock().ggml_backend_sched_set_tensor_backend(sched_, node, backends_[random() % 4 == 0 ? 1 : 0]);
        }
    }
}

void scheduled::allocate(const random_graph & g) {
    reset();
    tie_nodes(g);
    if (!stock().ggml_backend_sched_alloc_graph(sched_, g.graph())) {
        throw std::runtime_error("the scheduler did not allocate the graph");
    }
}

void scheduled::reserve(const random_graph & g) {
    reset();
    tie_nodes(g);
    if (!stock().base.ggml_backend_sched_reserve(sched_, g.graph())) {
        throw std::runtime_error("the scheduler did not reserve memory for the graph");
    }
}

void scheduled::reset() {
    stock().ggml_backend_sched_reset(sched_);
}

std::string scheduled::compute(const random_graph & g) {
    g.fill();
    const int status = stock().ggml_backend_sched_graph_compute(sched_, g.graph());
    if (status != GGML_COMPUTE_SUCCESS) {
        throw std::runtime_error("compute returned " + std::to_string(status) + ": " + ggml_ext_last_error());
    }
    std::string all;
    for (const ggml_tensor * t : g.observed()) {
        all += bytes_of(t);
    }
    return all;
}

void scheduled::set_callback(bool on) {
    const auto callback = [](ggml_tensor * t, bool ask, void *) {
        return !ask || (reinterpret_cast<uintptr_t>(t) / sizeof(ggml_tensor)) % 3 == 0;
    };
    stock().ggml_backend_sched_set_eval_callback(sched_, on ? +callback : nullptr, nullptr);
}

int scheduled::n_splits() const {
    return stock().ggml_backend_sched_get_n_splits(sched_);
}

} // namespace ggml_ext::test
