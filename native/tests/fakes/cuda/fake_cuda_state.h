#pragma once
// What the files of the fake driver share.

#include "fake_cuda.h"
#include "ggml-ext.h"

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define FAKE extern "C" GGML_EXT_API

namespace fake {

constexpr CUresult INVALID_VALUE = 1, INVALID_CONTEXT = 201;

using task = std::shared_ptr<std::function<void()>>;

struct graph_node {
    task                work;
    std::vector<size_t> after;
    bool                waits = false; // it was launched so that it may begin early, and waits by itself
};

struct capture {
    CUstream_st *           origin;
    std::vector<graph_node> nodes;
    bool                    broken = false;
    bool                    over   = false;
};

} // namespace fake

struct CUctx_st {
    CUdevice device;
};

struct CUstream_st {
    std::deque<fake::task>         queue; // work [n_done, n_queued)
    size_t                         n_done = 0, n_queued = 0;
    std::shared_ptr<fake::capture> into;  // NULL: not captured
    std::vector<size_t>            tail;  // nodes of the capture that the next one depends on
    bool                           live = true;
};

struct CUevent_st {
    CUstream_st *                  stream   = nullptr; // recorded outside a capture: at this point of that stream
    size_t                         position = 0;
    std::shared_ptr<fake::capture> in;               // inside one: behind these nodes
    std::vector<size_t>            nodes;
    bool                           live = true;
};

struct CUgraph_st {
    std::vector<fake::graph_node> nodes;
};

struct CUgraphNode_st {}; // the address of a graph's fake::graph_node

struct CUgraphExec_st {
    std::vector<fake::graph_node> nodes;
};

namespace fake {

struct state {
    std::recursive_mutex            mutex;
    std::map<std::string, int>      calls;
    std::map<std::string, CUresult> failures;
    std::deque<CUstream_st>         streams; // never freed: events may name them
    std::deque<CUevent_st>          events;
    int                             live = 0;
    fake_cuda_graph                 instantiated{};
    std::string                     violations;
    int                             major = 9, minor = 0, has_vmm = 1, version = 13000;
    CUctx_st                        contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
    int                             retained    = 0;
};

state & the();

CUcontext & current_context(); // of this thread

// Of each entry: holds the lock, counts, and knows whether this call is to fail.
class entry {
public:
    explicit entry(const char * name, bool needs_context = true) : lock_(the().mutex) {
        ++the().calls[name];
        const auto planned = the().failures.find(name);
        if (planned != the().failures.end()) {
            result = planned->second;
            the().failures.erase(planned);
        } else if (needs_context && current_context() == nullptr) {
            result = INVALID_CONTEXT;
        }
    }
    CUresult result = 0;

private:
    std::lock_guard<std::recursive_mutex> lock_;
};

} // namespace fake
