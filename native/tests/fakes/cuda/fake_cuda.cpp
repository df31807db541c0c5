#include "fake_cuda.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

constexpr CUresult INVALID_VALUE = 1, INVALID_DEVICE = 101, INVALID_CONTEXT = 201;
constexpr CUresult CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905;

using task = std::shared_ptr<std::function<void()>>;

struct graph_node {
    task                work;
    std::vector<size_t> after;
};

struct capture {
    CUstream_st *           origin;
    std::vector<graph_node> nodes;
    bool                    broken = false;
    bool                    over   = false;
};

} // namespace

struct CUctx_st {
    CUdevice device;
};

struct CUstream_st {
    std::deque<task>         queue; // work [n_done, n_queued)
    size_t                   n_done = 0, n_queued = 0;
    std::shared_ptr<capture> into;  // NULL: not captured
    std::vector<size_t>      tail;  // nodes of the capture that the next one depends on
    bool                     live = true;
};

struct CUevent_st {
    CUstream_st *            stream = nullptr; // recorded outside a capture: at this point of that stream
    size_t                   position = 0;
    std::shared_ptr<capture> in;               // inside one: behind these nodes
    std::vector<size_t>      nodes;
    bool                     live = true;
};

struct CUgraph_st {
    std::vector<graph_node> nodes;
};

struct CUgraphExec_st {
    std::vector<graph_node> nodes;
};

namespace {

struct state {
    std::recursive_mutex            mutex;
    std::map<std::string, int>      calls;
    std::map<std::string, CUresult> failures;
    std::deque<CUstream_st>         streams; // never freed: events may name them
    std::deque<CUevent_st>          events;
    int                             live = 0;
    std::string                     violations;
    int                             major = 9, minor = 0, has_vmm = 1, version = 13000;
    CUctx_st                        contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
    int                             retained = 0;
};

state & the() {
    static state * instance = new state();
    return *instance;
}

thread_local CUcontext current = nullptr;

// Of each entry: holds the lock, counts, and knows whether this call is to fail.
class entry {
public:
    explicit entry(const char * name, bool needs_context = true) : lock_(the().mutex) {
        ++the().calls[name];
        const auto planned = the().failures.find(name);
        if (planned != the().failures.end()) {
            result = planned->second;
            the().failures.erase(planned);
        } else if (needs_context && current == nullptr) {
            result = INVALID_CONTEXT;
        }
    }
    CUresult result = 0;

private:
    std::lock_guard<std::recursive_mutex> lock_;
};

void advance(CUstream_st & s, size_t position) {
    while (s.n_done < position) {
        const task work = s.queue.front();
        s.queue.pop_front();
        ++s.n_done;
        (*work)();
    }
}

void enqueue(CUstream_st & s, task work) {
    s.queue.push_back(std::move(work));
    ++s.n_queued;
}

void run_latest_first(const std::vector<graph_node> & nodes) {
    std::vector<bool> done(nodes.size(), false);
    const auto        ready = [&](const graph_node & n) { return std::all_of(n.after.begin(), n.after.end(), [&](size_t i) { return done[i]; }); };
    for (size_t n = 0; n < nodes.size(); ++n) {
        size_t pick = nodes.size();
        while (done[--pick] || !ready(nodes[pick])) {
        }
        (*nodes[pick].work)();
        done[pick] = true;
    }
}

// all nodes from which `from` can be reached backwards
void mark_before(const capture & c, size_t from, std::vector<bool> & marked) {
    if (!marked[from]) {
        marked[from] = true;
        for (const size_t i : c.nodes[from].after) {
            mark_before(c, i, marked);
        }
    }
}

void merge(std::vector<size_t> & into, const std::vector<size_t> & from) {
    into.insert(into.end(), from.begin(), from.end());
    std::sort(into.begin(), into.end());
    into.erase(std::unique(into.begin(), into.end()), into.end());
}

} // namespace

FAKE CUresult fake_cuda_launch(CUstream stream, void (*run)(void *), void * data, void (*free)(void *)) {
    const std::shared_ptr<void> owned(data, free);
    const task                  work = std::make_shared<std::function<void()>>([run, owned] { run(owned.get()); });
    const entry                 e("launch");
    if (e.result != 0) {
        return e.result;
    }
    if (stream->into == nullptr) {
        enqueue(*stream, work);
        return 0;
    }
    if (stream->into->broken) {
        return CAPTURE_INVALIDATED;
    }
    stream->into->nodes.push_back({work, stream->tail});
    stream->tail = {stream->into->nodes.size() - 1};
    return 0;
}

FAKE int fake_cuda_calls(const char * function) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().calls[function];
}

FAKE int fake_cuda_live() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().live;
}

FAKE void fake_cuda_fail_next(const char * function, CUresult error) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().failures[function] = error;
}

FAKE void fake_cuda_set_device(int major, int minor, bool has_vmm, int driver_version) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().major   = major;
    the().minor   = minor;
    the().has_vmm = has_vmm ? 1 : 0;
    the().version = driver_version;
}

FAKE const char * fake_cuda_violations() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().violations.c_str();
}

FAKE void fake_cuda_note_violation(const char * text) {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().violations += std::string(text) + "\n";
}

FAKE void fake_cuda_forget_violations() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    the().violations.clear();
}

FAKE CUresult cuInit(unsigned) {
    return entry("cuInit", false).result;
}

FAKE CUresult cuDriverGetVersion(int * version) {
    const entry e("cuDriverGetVersion", false);
    *version = the().version;
    return e.result;
}

FAKE CUresult cuGetErrorName(CUresult, const char ** name) {
    *name = "CUDA_ERROR_OF_THE_FAKE";
    return 0;
}

FAKE CUresult cuGetErrorString(CUresult, const char ** text) {
    *text = "as the fake driver was told, or found";
    return 0;
}

FAKE CUresult cuDeviceGetCount(int * count) {
    *count = 8;
    return entry("cuDeviceGetCount", false).result;
}

FAKE CUresult cuDeviceGetByPCIBusId(CUdevice * device, const char * id) { // "0000:03:00.0" is device 3
    const entry e("cuDeviceGetByPCIBusId", false);
    const int   bus = std::strlen(id) == 12 ? std::atoi(id + 5) : -1;
    *device         = bus;
    return bus < 0 || bus > 7 ? INVALID_DEVICE : e.result;
}

FAKE CUresult cuDeviceGetAttribute(int * value, int attribute, CUdevice) {
    const entry e("cuDeviceGetAttribute", false);
    switch (attribute) {
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:            *value = the().major; break;
        case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:            *value = the().minor; break;
        case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: *value = the().has_vmm; break;
        default:                                                      return INVALID_VALUE;
    }
    return e.result;
}

FAKE CUresult cuDevicePrimaryCtxRetain(CUcontext * context, CUdevice device) {
    const entry e("cuDevicePrimaryCtxRetain", false);
    *context = &the().contexts[device];
    return e.result;
}

FAKE CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
    return entry("cuDevicePrimaryCtxRelease", false).result;
}

FAKE CUresult cuCtxSetCurrent(CUcontext context) {
    const entry e("cuCtxSetCurrent", false);
    current = context;
    return e.result;
}

FAKE CUresult cuStreamCreate(CUstream * stream, unsigned flags) {
    const entry e("cuStreamCreate");
    if (e.result == 0) {
        if ((flags & CU_STREAM_NON_BLOCKING) == 0) {
            fake_cuda_note_violation("a stream that waits for the default stream");
        }
        *stream = &the().streams.emplace_back();
        ++the().live;
    }
    return e.result;
}

FAKE CUresult cuStreamDestroy_v2(CUstream stream) {
    const entry e("cuStreamDestroy");
    advance(*stream, stream->n_queued);
    stream->live = false;
    --the().live;
    return e.result;
}

FAKE CUresult cuStreamSynchronize(CUstream stream) {
    const entry e("cuStreamSynchronize");
    if (stream->into != nullptr) {
        stream->into->broken = true;
        return CAPTURE_UNSUPPORTED;
    }
    advance(*stream, stream->n_queued);
    return e.result;
}

FAKE CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
    const entry e("cuStreamWaitEvent");
    if (e.result != 0) {
        return e.result;
    }
    if (event->in == nullptr) {
        if (stream->into != nullptr) {
            stream->into->broken = true;
            return CAPTURE_ISOLATION;
        }
        if (event->stream != nullptr) {
            CUstream_st & other    = *event->stream;
            const size_t  position = event->position;
            enqueue(*stream, std::make_shared<std::function<void()>>([&other, position] { advance(other, position); }));
        }
        return 0;
    }
    if (event->in->broken || event->in->over || (stream->into != nullptr && stream->into != event->in)) {
        return CAPTURE_INVALIDATED;
    }
    if (stream->into == nullptr) {
        stream->into = event->in;
        stream->tail.clear();
    }
    merge(stream->tail, event->nodes);
    return 0;
}

FAKE CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus * status) {
    const entry e("cuStreamIsCapturing");
    *status = stream->into == nullptr ? CU_STREAM_CAPTURE_STATUS_NONE
              : stream->into->broken  ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                      : CU_STREAM_CAPTURE_STATUS_ACTIVE;
    return e.result;
}

FAKE CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
    const entry e("cuStreamBeginCapture");
    if (e.result != 0) {
        return e.result;
    }
    if (mode != CU_STREAM_CAPTURE_MODE_RELAXED) {
        fake_cuda_note_violation("a capture that other threads can break");
    }
    if (stream->into != nullptr) {
        return INVALID_VALUE;
    }
    stream->into         = std::make_shared<capture>();
    stream->into->origin = stream;
    stream->tail.clear();
    return 0;
}

FAKE CUresult cuStreamEndCapture(CUstream stream, CUgraph * graph) {
    const entry e("cuStreamEndCapture");
    *graph = nullptr;
    if (stream->into == nullptr || stream->into->origin != stream) {
        return INVALID_VALUE;
    }
    const std::shared_ptr<capture> c = stream->into;
    std::vector<bool>              joined(c->nodes.size(), false);
    for (const size_t i : stream->tail) {
        mark_before(*c, i, joined);
    }
    c->over = true;
    for (CUstream_st & s : the().streams) {
        if (s.into == c) {
            s.into.reset();
            s.tail.clear();
        }
    }
    if (c->broken) {
        return CAPTURE_INVALIDATED;
    }
    if (std::find(joined.begin(), joined.end(), false) != joined.end()) {
        return CAPTURE_UNJOINED;
    }
    if (e.result == 0) {
        *graph = new CUgraph_st{c->nodes};
        ++the().live;
    }
    return e.result;
}

FAKE CUresult cuEventCreate(CUevent * event, unsigned) {
    const entry e("cuEventCreate");
    if (e.result == 0) {
        *event = &the().events.emplace_back();
        ++the().live;
    }
    return e.result;
}

FAKE CUresult cuEventDestroy_v2(CUevent event) {
    const entry e("cuEventDestroy");
    event->live = false;
    --the().live;
    return e.result;
}

FAKE CUresult cuEventRecord(CUevent event, CUstream stream) {
    const entry e("cuEventRecord");
    if (e.result != 0) {
        return e.result;
    }
    if (stream->into != nullptr && stream->into->broken) {
        return CAPTURE_INVALIDATED;
    }
    event->in       = stream->into;
    event->nodes    = stream->tail;
    event->stream   = stream->into == nullptr ? stream : nullptr;
    event->position = stream->n_queued;
    return 0;
}

FAKE CUresult cuGraphInstantiateWithFlags(CUgraphExec * exec, CUgraph graph, unsigned long long) {
    const entry e("cuGraphInstantiateWithFlags");
    if (e.result == 0) {
        *exec = new CUgraphExec_st{graph->nodes};
        ++the().live;
    }
    return e.result;
}

FAKE CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    const entry e("cuGraphLaunch");
    if (e.result != 0) {
        return e.result;
    }
    if (stream->into != nullptr) {
        fake_cuda_note_violation("a graph launched into a capture");
        return CAPTURE_UNSUPPORTED;
    }
    const std::vector<graph_node> nodes = exec->nodes; // it may be destroyed before it runs
    enqueue(*stream, std::make_shared<std::function<void()>>([nodes] { run_latest_first(nodes); }));
    return 0;
}

FAKE CUresult cuGraphDestroy(CUgraph graph) {
    const entry e("cuGraphDestroy");
    delete graph;
    --the().live;
    return e.result;
}

FAKE CUresult cuGraphExecDestroy(CUgraphExec exec) {
    const entry e("cuGraphExecDestroy");
    delete exec;
    --the().live;
    return e.result;
}
