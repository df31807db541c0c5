#pragma once
// An attached CUDA device on the fake driver, and graphs on it with kernels that run on the layer's stream.

#include "core/fixture.h"
#include "core/swish.h"
#include "cuda/fake_device.h"
#include "fake_cuda.h"

#include <functional>

namespace ggml_ext::test {

// The first one of the process attaches the CPU device too.
inline ggml_backend_device * attached_cuda(const cuda_device_options & options = {}) {
    ggml_backend_device * device = new_cuda_device(options);
    attached_cpu();
    REQUIRE_OK(ggml_ext_attach_device(device));
    return device;
}

// The device of a program that needs no other.
inline ggml_backend_device * one_cuda() {
    static ggml_backend_device * instance = attached_cuda();
    return instance;
}

template <typename Service> Service service_of(ggml_backend_device * device, const char * name) {
    auto * reg = stock().base.ggml_backend_dev_backend_reg(device);
    return reinterpret_cast<Service>(stock().base.ggml_backend_reg_get_proc_address(reg, name));
}

// A kernel of test.swish.v1 on the stream of ggml_ext_cuda_context_v1.
struct cuda_swish {
    std::atomic<int>                   calls{0};     // of execute
    size_t                             workspace = 0; // what it asks for, and fills with NaN
    bool                               waits     = false; // launched so that it may begin before the work in front of it has ended
    std::function<int(cuda::CUstream)> first; // (optional) called first; a status
};

inline int prepare_cuda_swish(const ggml_ext_prepare_params *, ggml_ext_prepared * out, void * user_data) {
    out->workspace_size = static_cast<cuda_swish *>(user_data)->workspace;
    return GGML_EXT_STATUS_SUCCESS;
}

inline int execute_cuda_swish(const ggml_ext_exec_params * p, void * user_data) {
    auto & kernel = *static_cast<cuda_swish *>(user_data);
    ++kernel.calls;
    const auto            context = service_of<ggml_ext_cuda_context_v1_t>(stock().base.ggml_backend_get_device(p->backend), "ggml_ext_cuda_context_v1");
    ggml_ext_cuda_context cuda{};
    cuda.struct_size = sizeof(cuda);
    if (const int status = context(p->backend, &cuda); status != GGML_EXT_STATUS_SUCCESS) {
        return status;
    }
    auto * stream = static_cast<cuda::CUstream>(cuda.stream);
    if (kernel.first != nullptr) {
        if (const int status = kernel.first(stream); status != GGML_EXT_STATUS_SUCCESS) {
            return status;
        }
    }
    struct launch {
        const float * x;
        float *       y;
        float         beta;
        size_t        n;
        float *       scratch;
    };
    const ggml_ext_node & node = *p->nodes[0];
    auto *                l    = new launch{static_cast<const float *>(node.src[0]->data), static_cast<float *>(node.dst->data), 0,
                          node.dst->nbytes / sizeof(float), p->workspace_size > 0 ? static_cast<float *>(p->workspace) : nullptr};
    std::memcpy(&l->beta, node.attrs, sizeof(l->beta));
    const CUresult result = fake_cuda_launch(
        stream,
        [](void * data) {
            const launch & a = *static_cast<launch *>(data);
            if (a.scratch != nullptr) {
                *a.scratch = std::nanf("");
            }
            for (size_t i = 0; i < a.n; ++i) {
                a.y[i] = a.x[i] / (1.0f + std::exp(-a.beta * a.x[i]));
            }
        },
        l, [](void * data) { delete static_cast<launch *>(data); }, kernel.waits);
    return result == 0 ? GGML_EXT_STATUS_SUCCESS : GGML_EXT_STATUS_FAILED;
}

constexpr uint32_t SAFE     = GGML_EXT_KERNEL_CAPTURE_SAFE;
constexpr uint32_t REUSABLE = SAFE | GGML_EXT_KERNEL_REPLAY_REUSABLE;

inline void register_cuda_swish(registration & r, ggml_backend_device * device, cuda_swish & kernel, uint32_t flags,
                                const char * name = "test.swish.cuda", const char * op = "test.swish.v1") {
    ggml_ext_kernel_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.name        = name;
    desc.op          = op;
    desc.user_data   = &kernel;
    desc.supports    = supports_f32;
    desc.prepare     = prepare_cuda_swish;
    desc.execute     = execute_cuda_swish;
    REQUIRE_OK(ggml_ext_register_kernel_ex(device, &desc, flags, &r.handle));
}

// y = sqr(swish(2 x + 1)) + swish(2 x + 1): native, ours, native
struct cuda_graph {
    ggml_context * ctx    = nullptr;
    ggml_cgraph *  graph  = nullptr;
    ggml_tensor *  x      = nullptr;
    ggml_tensor *  mid    = nullptr; // 2 x
    ggml_tensor *  ours   = nullptr; // the last node of ours
    ggml_tensor *  y      = nullptr;
    int            n_ours = 1;
    float          scale  = 2.0f;

    struct options {
        int64_t ne0 = 16, ne1 = 3;
        int     n_ours = 1; // swishes in a row of native, ours, native, ours
        float   scale = 2.0f, beta = 0.5f;
        bool    mid_is_output = false;
    };

    explicit cuda_graph(const options & o) : n_ours(o.n_ours), scale(o.scale), beta_(o.beta) {
        const auto & g = stock();
        ctx            = g.base.ggml_init({4 * 1024 * 1024, nullptr, true});
        graph          = g.base.ggml_new_graph_custom(ctx, 128, false);
        x              = g.ggml_new_tensor_2d(ctx, TYPE_F32, o.ne0, o.ne1);
        g.base.ggml_set_input(x);
        ggml_tensor * t = x;
        for (int i = 0; i < o.n_ours; ++i) {
            t = mid = g.ggml_scale(ctx, t, o.scale);
            if (o.mid_is_output) {
                g.base.ggml_set_output(mid);
            }
            REQUIRE_OK(ggml_ext_op_create(ctx, "test.swish.v1", 1, &t, &o.beta, sizeof(o.beta), &ours));
            t = ours;
        }
        y = g.base.ggml_add(ctx, g.ggml_sqr(ctx, t), t);
        g.base.ggml_set_output(y);
        g.base.ggml_build_forward_expand(graph, y);
    }
    ~cuda_graph() { stock().base.ggml_free(ctx); }
    cuda_graph(const cuda_graph &)             = delete;
    cuda_graph & operator=(const cuda_graph &) = delete;

    double expected(double v) const {
        for (int i = 0; i < n_ours; ++i) {
            v *= scale;
            v = v / (1.0 + std::exp(-beta_ * v));
        }
        return v * v + v;
    }

    std::vector<float> values(int seed) const {
        return ramp(static_cast<size_t>(x->ne[0] * x->ne[1]), -1.0f - 0.25f * static_cast<float>(seed), 0.0625f);
    }

    void set_input(int seed) const {
        const auto v = values(seed);
        stock().ggml_backend_tensor_set(x, v.data(), 0, v.size() * sizeof(float));
    }

    void check(int seed) const {
        const auto         v = values(seed);
        std::vector<float> out(v.size());
        stock().ggml_backend_tensor_get(y, out.data(), 0, out.size() * sizeof(float));
        for (size_t i = 0; i < v.size(); ++i) {
            REQUIRE(out[i] == doctest::Approx(expected(v[i])).epsilon(1e-5));
        }
        REQUIRE(std::string(fake_cuda_violations()) == "");
    }

private:
    float beta_;
};

// A backend of a device, alone or with a CPU backend behind it in a scheduler.
class cuda_session {
public:
    explicit cuda_session(ggml_backend_device * device) {
        const auto & g        = stock();
        backend               = g.base.ggml_backend_dev_init(device, nullptr);
        cpu                   = g.base.ggml_backend_dev_init(stock().cpu, nullptr);
        ggml_backend * both[] = {backend, cpu};
        sched                 = g.base.ggml_backend_sched_new(both, nullptr, 2, 256, false, true);
    }
    ~cuda_session() { close(); }
    cuda_session(const cuda_session &)             = delete;
    cuda_session & operator=(const cuda_session &) = delete;

    void close() {
        const auto & g = stock();
        if (sched != nullptr) {
            g.base.ggml_backend_sched_free(sched);
            g.base.ggml_backend_free(backend);
            g.base.ggml_backend_free(cpu);
            sched = nullptr;
        }
    }

    // all of it on the CUDA backend
    void allocate(const cuda_graph & graph) {
        stock().ggml_backend_sched_reset(sched);
        stock().ggml_backend_sched_set_tensor_backend(sched, graph.x, backend);
        for (int i = 0; i < graph.graph->n_nodes; ++i) {
            stock().ggml_backend_sched_set_tensor_backend(sched, graph.graph->nodes[i], backend);
        }
        REQUIRE(stock().ggml_backend_sched_alloc_graph(sched, graph.graph));
    }

    // one compute with that input, checked
    void run(const cuda_graph & graph, int seed) {
        graph.set_input(seed);
        REQUIRE_MESSAGE(stock().ggml_backend_sched_graph_compute(sched, graph.graph) == GGML_COMPUTE_SUCCESS, ggml_ext_last_error());
        graph.check(seed);
    }

    int32_t compute(const cuda_graph & graph) { return stock().ggml_backend_sched_graph_compute(sched, graph.graph); }

    ggml_backend *              backend = nullptr;
    ggml_backend *              cpu     = nullptr;
    struct ggml_backend_sched * sched   = nullptr;
};

// calls of the driver since then
class driver_calls {
public:
    explicit driver_calls(const char * function) : function_(function), before_(fake_cuda_calls(function)) {}
    int count() const { return fake_cuda_calls(function_) - before_; }

private:
    const char * function_;
    int          before_;
};

} // namespace ggml_ext::test
