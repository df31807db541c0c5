#pragma once
// A CUDA driver without a GPU, libcuda.so.1 for tests. Device memory is host memory and a launch is a host function. Nothing runs
// before a stream is synchronised, and then only what that stream waits for: work that no event orders is left undone. A launched
// graph runs its nodes in the latest order that their dependencies allow.

#include "cuda/driver.h"

using namespace ggml_ext::cuda;

extern "C" {

// those of the driver that tests call themselves
CUresult cuDevicePrimaryCtxRetain(CUcontext * context, CUdevice device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuStreamCreate(CUstream * stream, unsigned flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus * status);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, CUgraph * graph);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode * nodes, size_t * n);
CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode * from, CUgraphNode * to, CUgraphEdgeData * data, size_t * n);
CUresult cuGraphInstantiateWithFlags(CUgraphExec * exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphExecDestroy(CUgraphExec exec);

// Enqueues run(data) on a stream, or makes it a node of the graph that the stream is captured into; free(data) follows the last
// run that may come. `waits`: the launch has the attribute of programmatic serialisation, so the node's edges become programmatic ones.
CUresult fake_cuda_launch(CUstream stream, void (*run)(void *), void * data, void (*free)(void *), bool waits = false);

// The graph that was instantiated last
struct fake_cuda_graph {
    int n_nodes, n_edges, n_programmatic;
};
struct fake_cuda_graph fake_cuda_instantiated();

// How often a function of the driver was called, by its name in the driver's headers
int fake_cuda_calls(const char * function);
// Streams, events, graphs, executable graphs and modules that were made and not yet destroyed
int fake_cuda_live();
// The next call of that function returns `error`
void fake_cuda_fail_next(const char * function, CUresult error);

// whose context is this thread's; -1: none
int fake_cuda_current_device();

// of every device
void fake_cuda_set_device(int major, int minor, bool has_vmm, int driver_version);

// What kernels of that name in modules do. Images hold their text (fake_images.h).
struct fake_cuda_kernel_run {
    const void * const * args; // copied at the launch
    unsigned             grid[3], block[3], shared_memory;
};
void fake_cuda_set_kernel(const char * name, void (*run)(const struct fake_cuda_kernel_run * r));

// What a correct caller never does, such as work for a stream whose capture is broken; "" where nothing was noted
const char * fake_cuda_violations();
void         fake_cuda_note_violation(const char * text);
void         fake_cuda_forget_violations();
}
