// Streams, events, captures and graphs of the fake driver.

#include "fake_cuda_state.h"

#include <algorithm>

using namespace fake;

namespace {

constexpr CUresult CAPTURE_UNSUPPORTED = 900, CAPTURE_INVALIDATED = 901, CAPTURE_UNJOINED = 904, CAPTURE_ISOLATION = 905;

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

CUgraphNode handle_of(graph_node & node) {
    return reinterpret_cast<CUgraphNode>(&node);
}

CUgraphEdgeData data_of(const graph_node & to) {
    const unsigned char programmatic = to.waits ? 1 : 0;
    return {programmatic, 0, programmatic, {}};
}

} // namespace

FAKE CUresult fake_cuda_launch(CUstream stream, void (*run)(void *), void * data, void (*free)(void *), bool waits) {
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
    stream->into->nodes.push_back({work, stream->tail, waits});
    stream->tail = {stream->into->nodes.size() - 1};
    return 0;
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

FAKE CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode * nodes, size_t * n) {
    const entry e("cuGraphGetNodes");
    for (size_t i = 0; nodes != nullptr && i < std::min(*n, graph->nodes.size()); ++i) {
        nodes[i] = handle_of(graph->nodes[i]);
    }
    *n = nodes == nullptr ? graph->nodes.size() : std::min(*n, graph->nodes.size());
    return e.result;
}

FAKE CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode * from, CUgraphNode * to, CUgraphEdgeData * data, size_t * n) {
    const entry e("cuGraphGetEdges");
    size_t      i = 0;
    for (graph_node & node : graph->nodes) {
        for (const size_t before : node.after) {
            if (from != nullptr && i < *n) {
                from[i] = handle_of(graph->nodes[before]);
                to[i]   = handle_of(node);
                data[i] = data_of(node);
            }
            ++i;
        }
    }
    *n = from == nullptr ? i : std::min(*n, i);
    return e.result;
}

FAKE CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode * from, const CUgraphNode * to, const CUgraphEdgeData * data, size_t n) {
    const entry e("cuGraphRemoveDependencies");
    if (e.result != 0) {
        return e.result;
    }
    for (size_t i = 0; i < n; ++i) {
        auto &                node     = *reinterpret_cast<graph_node *>(to[i]);
        const CUgraphEdgeData expected = data_of(node);
        const auto            edge     = std::find_if(node.after.begin(), node.after.end(),
                                                      [&](size_t before) { return handle_of(graph->nodes[before]) == from[i]; });
        if (edge == node.after.end() || data[i].from_port != expected.from_port || data[i].type != expected.type) {
            return INVALID_VALUE; // there is no such edge
        }
        node.after.erase(edge);
    }
    return 0;
}

FAKE fake_cuda_graph fake_cuda_instantiated() {
    const std::lock_guard<std::recursive_mutex> lock(the().mutex);
    return the().instantiated;
}

FAKE CUresult cuGraphInstantiateWithFlags(CUgraphExec * exec, CUgraph graph, unsigned long long) {
    const entry e("cuGraphInstantiateWithFlags");
    if (e.result == 0) {
        *exec = new CUgraphExec_st{graph->nodes};
        ++the().live;
        the().instantiated = {static_cast<int>(graph->nodes.size()), 0, 0};
        for (const graph_node & node : graph->nodes) {
            the().instantiated.n_edges += static_cast<int>(node.after.size());
            the().instantiated.n_programmatic += node.waits ? static_cast<int>(node.after.size()) : 0;
        }
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
