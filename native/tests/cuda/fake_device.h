#pragma once
// A device of ggml's CUDA registry without a GPU, on the fake driver (fakes/cuda). It computes with the CPU backend's functions, but
// asynchronously: a graph is frozen when it comes, addresses and parameters included, and runs when the stream is synchronised. As
// ggml-cuda does, it finds a graph again by its first node, and where nothing has changed makes a CUDA graph of it by itself.

#include "cuda/driver.h"
#include "support/stock_ggml.h"

namespace ggml_ext::test {

struct cuda_device_options {
    const char * library = "fake_ggml_cuda_sm90"; // where the preflight looks for code
    const char * bus     = "0000:03:00.0";        // of the fake driver's device 3; NULL: not known
    const char * name    = "CUDA0";
    bool         no_vmm  = false; // ggml was built without virtual memory management
};

// Another one at each call. The first call must come before the CPU device is attached.
ggml_backend_device * new_cuda_device(const cuda_device_options & options = {});

// Of its backends
cuda::CUstream native_stream(ggml_backend * backend);
int            native_graph_launches(ggml_backend * backend); // of CUDA graphs that ggml made by itself

} // namespace ggml_ext::test
