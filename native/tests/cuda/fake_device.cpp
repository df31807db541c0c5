#include "cuda/fake_device.h"

#include "fake_cuda.h"
#include "support/second_device.h"
#include "support/table_words.h"

#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace ggml_ext::test {

namespace {

struct feature {
    const char * name;
    const char * value;
};

struct fake_device {
    words               device{}, reg{};
    cuda_device_options options;
    feature             features[2] = {{nullptr, nullptr}, {nullptr, nullptr}};
};

// what ggml-cuda keeps of a graph to see whether it has changed
struct own_graph {
    std::vector<char> seen;
    uint64_t          uid    = 0;
    bool              stable = false;
};

struct fake_backend {
    cuda::CUstream stream                             = nullptr;
    int32_t (*compute)(ggml_backend *, ggml_cgraph *) = nullptr; // the CPU's
    void (*free)(ggml_backend *)                      = nullptr;
    std::map<const void *, own_graph> own_graphs;
    int                               launches = 0;
};

std::mutex                                                        mutex;
std::deque<fake_device>                                           devices;
std::unordered_map<ggml_backend *, std::unique_ptr<fake_backend>> backends;

fake_device & device_of(const void * pointer) { // of a device or its registry
    const std::lock_guard<std::mutex> lock(mutex);
    for (fake_device & d : devices) {
        if (pointer == d.device.data() || pointer == d.reg.data()) {
            return d;
        }
    }
    std::abort();
}

fake_backend & backend_of(ggml_backend * backend) {
    const std::lock_guard<std::mutex> lock(mutex);
    return *backends.at(backend);
}

struct positions {
    int init, supports, name, props, reg_name, reg_proc, compute, free, synchronize, record, wait;
};

const positions & at() {
    static const positions instance = [] {
        const auto &       b = stock().base;
        ggml_backend_event event{nullptr, nullptr};
        positions          p{};
        p.init        = word_called([&](void * d) { b.ggml_backend_dev_init(static_cast<ggml_backend_device *>(d), nullptr); });
        p.supports    = word_called([&](void * d) { b.ggml_backend_dev_supports_op(static_cast<ggml_backend_device *>(d), nullptr); });
        p.name        = word_called([&](void * d) { b.ggml_backend_dev_name(static_cast<ggml_backend_device *>(d)); });
        p.props       = word_called([&](void * d) {
            char props[512];
            b.ggml_backend_dev_get_props(static_cast<ggml_backend_device *>(d), props);
        });
        p.reg_name    = word_called([&](void * r) { b.ggml_backend_reg_name(static_cast<ggml_backend_reg *>(r)); });
        p.reg_proc    = word_called([&](void * r) { b.ggml_backend_reg_get_proc_address(static_cast<ggml_backend_reg *>(r), "x"); });
        p.compute     = word_called([&](void * d) { b.ggml_backend_graph_compute_async(static_cast<ggml_backend *>(d), nullptr); });
        p.free        = word_called([&](void * d) { b.ggml_backend_free(static_cast<ggml_backend *>(d)); });
        p.synchronize = word_called([&](void * d) { b.ggml_backend_synchronize(static_cast<ggml_backend *>(d)); });
        p.record      = word_called([&](void * d) { b.ggml_backend_event_record(&event, static_cast<ggml_backend *>(d)); });
        p.wait        = word_called([&](void * d) { b.ggml_backend_event_wait(static_cast<ggml_backend *>(d), &event); });
        return p;
    }();
    return instance;
}

// A graph as it was when it came: copies of its nodes and of all that they read, in a graph of ggml's.
struct frozen_graph {
    ggml_backend *          backend = nullptr;
    std::deque<ggml_tensor> tensors;
    ggml_context *          ctx   = nullptr;
    ggml_cgraph *           graph = nullptr;

    frozen_graph(ggml_backend * b, const ggml_cgraph * from) : backend(b) {
        std::unordered_map<const ggml_tensor *, ggml_tensor *> copies;
        const auto                                             copy = [&](ggml_tensor *& pointer, const auto & self, int depth) -> void {
            if (pointer == nullptr || depth > 2) {
                return;
            }
            const auto [found, is_new] = copies.emplace(pointer, nullptr);
            if (is_new) {
                ggml_tensor & t = tensors.emplace_back(*pointer);
                copies[pointer] = &t;
                pointer         = &t;
                for (ggml_tensor *& src : t.src) {
                    self(src, self, depth + 1);
                }
                self(t.view_src, self, depth + 1);
            } else {
                pointer = found->second;
            }
        };
        const auto n = static_cast<size_t>(from->n_nodes);
        ctx          = stock().base.ggml_init({stock().base.ggml_graph_overhead_custom(n, false) + 1024, nullptr, true});
        graph        = stock().base.ggml_new_graph_custom(ctx, n, false);
        for (size_t i = 0; i < n; ++i) {
            ggml_tensor * node = from->nodes[i];
            copy(node, copy, 0);
            stock().ggml_graph_add_node(graph, node);
        }
    }
    ~frozen_graph() { stock().base.ggml_free(ctx); }
};

void run_frozen(void * data) {
    auto & frozen = *static_cast<frozen_graph *>(data);
    if (backend_of(frozen.backend).compute(frozen.backend, frozen.graph) != GGML_COMPUTE_SUCCESS) {
        fake_cuda_note_violation("a native graph failed");
    }
}

void set_device() { // as ggml-cuda does, and leaves it
    static const CUcontext context = [] {
        CUcontext c;
        cuDevicePrimaryCtxRetain(&c, 3);
        return c;
    }();
    cuCtxSetCurrent(context);
}

void no_broken_capture(cuda::CUstream stream, const char * what) {
    CUstreamCaptureStatus status;
    cuStreamIsCapturing(stream, &status);
    if (status == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
        fake_cuda_note_violation((std::string("ggml would have aborted: ") + what + " while its stream's capture is broken").c_str());
    }
}

bool has_changed(own_graph & own, const ggml_cgraph * graph) {
    if (graph->uid != 0 && graph->uid == own.uid) {
        return false;
    }
    own.uid = graph->uid;
    std::vector<char> now;
    const auto        add = [&](const void * bytes, size_t n) {
        now.insert(now.end(), static_cast<const char *>(bytes), static_cast<const char *>(bytes) + n);
    };
    for (int i = 0; i < graph->n_nodes; ++i) {
        const ggml_tensor * node = graph->nodes[i];
        add(node, sizeof(*node));
        for (const ggml_tensor * src : node->src) {
            if (src != nullptr) {
                add(&src->data, sizeof(src->data));
                add(src->ne, sizeof(src->ne) + sizeof(src->nb));
            }
        }
    }
    const bool changed = now != own.seen;
    own.seen           = std::move(now);
    return changed;
}

int32_t compute(ggml_backend * backend, ggml_cgraph * graph) {
    set_device();
    fake_backend & b = backend_of(backend);
    no_broken_capture(b.stream, "a native graph came");
    own_graph & own     = b.own_graphs[graph->nodes[0]];
    const bool  changed = has_changed(own, graph);
    if (!changed) {
        CUstreamCaptureStatus status;
        cuStreamIsCapturing(b.stream, &status);
        if (status != CU_STREAM_CAPTURE_STATUS_NONE) {
            fake_cuda_note_violation("ggml would have aborted: it makes a CUDA graph of its own inside a capture");
        }
        ++b.launches;
    }
    fake_cuda_launch(b.stream, run_frozen, new frozen_graph(backend, graph), [](void * p) { delete static_cast<frozen_graph *>(p); }, true);
    return GGML_COMPUTE_SUCCESS;
}

ggml_backend * init(ggml_backend_device * device, const char *) {
    fake_device &  d       = device_of(device);
    ggml_backend * backend = new_native_cpu_backend(1);
    auto *         table   = reinterpret_cast<void **>(backend);
    auto           made    = std::make_unique<fake_backend>();
    made->compute          = reinterpret_cast<decltype(made->compute)>(table[at().compute]);
    made->free             = reinterpret_cast<decltype(made->free)>(table[at().free]);
    set_device();
    cuStreamCreate(&made->stream, CU_STREAM_NON_BLOCKING);
    cuCtxSetCurrent(nullptr); // the layer cannot rely on it

    table[at().compute]     = reinterpret_cast<void *>(&compute);
    table[at().free]        = reinterpret_cast<void *>(+[](ggml_backend * b) {
        set_device();
        const auto native_free = backend_of(b).free;
        cuStreamDestroy_v2(backend_of(b).stream);
        {
            const std::lock_guard<std::mutex> lock(mutex);
            backends.erase(b);
        }
        native_free(b);
    });
    table[at().synchronize] = reinterpret_cast<void *>(+[](ggml_backend * b) {
        set_device();
        cuStreamSynchronize(backend_of(b).stream);
    });
    table[at().record]      = reinterpret_cast<void *>(+[](ggml_backend * b, ggml_backend_event * event) {
        set_device();
        no_broken_capture(backend_of(b).stream, "an event was recorded");
        cuEventRecord(static_cast<CUevent>(event->context), backend_of(b).stream);
    });
    table[at().wait]        = reinterpret_cast<void *>(+[](ggml_backend * b, ggml_backend_event * event) {
        set_device();
        if (cuStreamWaitEvent(backend_of(b).stream, static_cast<CUevent>(event->context), 0) != 0) {
            fake_cuda_note_violation("ggml would have aborted: its stream cannot wait for that event");
        }
    });
    void ** word            = table;
    while (*word != stock().cpu) {
        ++word;
    }
    *word = d.device.data();
    const std::lock_guard<std::mutex> lock(mutex);
    backends.emplace(backend, std::move(made));
    return backend;
}

void get_props(ggml_backend_device * device, void * out) {
    const fake_device & d = device_of(device);
    struct {
        const char * name;
        const char * description;
        size_t       memory_free, memory_total;
        int32_t      type;
        const char * device_id;
    } props{d.options.name, "no GPU", 0, 0, 1, d.options.bus};
    std::memcpy(out, &props, sizeof(props));
}

void * get_proc_address(ggml_backend_reg *, const char * name) {
    if (std::strcmp(name, "ggml_backend_get_features") == 0) {
        return reinterpret_cast<void *>(+[](ggml_backend_reg * reg) { return device_of(reg).features; });
    }
    return nullptr;
}

template <typename Function> Function find_in(const char * library, const char * name) {
    void * handle = dlopen((std::string(GGML_EXT_TEST_FAKE_CUDA "/") + library + ".so").c_str(), RTLD_NOW);
    void * symbol = handle == nullptr ? nullptr : dlsym(handle, name);
    if (symbol == nullptr) {
        std::fprintf(stderr, "fake CUDA device: %s\n", dlerror());
        std::exit(2);
    }
    return reinterpret_cast<Function>(symbol);
}

bool supports_op(void *, const void * op) {
    return stock().base.ggml_backend_dev_supports_op(second_device(), static_cast<const ggml_tensor *>(op));
}

} // namespace

ggml_backend_device * new_cuda_device(const cuda_device_options & options) {
    fake_device d;
    d.options = options;
    std::memcpy(d.device.data(), static_cast<void *>(second_device()), sizeof(d.device));
    auto * cpu_reg = stock().base.ggml_backend_dev_backend_reg(stock().cpu);
    std::memcpy(d.reg.data(), static_cast<void *>(cpu_reg), sizeof(d.reg));
    find_in<void (*)(bool (*)(void *, const void *))>(options.library, "fake_set_supports_op")(supports_op);

    d.device[at().init]     = reinterpret_cast<void *>(&init);
    d.device[at().supports] = find_in<void *>(options.library, "fake_supports_op");
    d.device[at().name]     = reinterpret_cast<void *>(+[](ggml_backend_device * device) { return device_of(device).options.name; });
    d.device[at().props]    = reinterpret_cast<void *>(&get_props);
    d.reg[at().reg_name]    = reinterpret_cast<void *>(+[](ggml_backend_reg *) { return "CUDA"; });
    d.reg[at().reg_proc]    = reinterpret_cast<void *>(&get_proc_address);
    if (options.no_vmm) {
        d.features[0] = {"NO_VMM", "1"};
    }
    const std::lock_guard<std::mutex> lock(mutex);
    fake_device &                     kept = devices.emplace_back(d);
    void **                           word = kept.device.data();
    while (*word != cpu_reg) {
        ++word;
    }
    *word = kept.reg.data();
    return reinterpret_cast<ggml_backend_device *>(kept.device.data());
}

cuda::CUstream native_stream(ggml_backend * backend) {
    return backend_of(backend).stream;
}

int native_graph_launches(ggml_backend * backend) {
    return backend_of(backend).launches;
}

} // namespace ggml_ext::test
