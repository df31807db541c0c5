// The layer on a real GPU: ordering, recordings and their limits, with ggml's own kernels between those of the library.

#include "fixture.h"

#include <thread>

using namespace ggml_ext;
using namespace ggml_ext::test;

namespace {

// x -> [ScaleAdd (native) -> rope_apply (ours)] so often. The matrices are half turns and quarter turns, so that values stay.
struct chain {
    static constexpr int64_t D = 64, H = 8, P = 32;

    model &       m;
    int64_t       L;
    int           n;
    ggml_tensor * x;
    ggml_tensor * pe;
    ggml_tensor * y;

    chain(model & owner, int n_steps, int64_t positions = 16) : m(owner), L(positions), n(n_steps) {
        const ggml_ext_rope_apply_attrs attrs{GGML_EXT_ROPE_INTERLEAVED, 0};
        x               = m.input(F32, {D, H, L});
        pe              = m.input(F32, {2, 2, P, L});
        ggml_tensor * t = x;
        for (int i = 0; i < n; ++i) {
            t = m.g.ggml_scale(m.ctx, m.g.base.ggml_add(m.ctx, t, x), 0.5f);
            t = m.node(GGML_EXT_OP_ROPE_APPLY, {t, pe}, &attrs, sizeof(attrs));
        }
        y = t;
        m.expand(y);
    }

    void set(uint32_t seed) {
        xv = random_floats(static_cast<size_t>(D * H * L), seed);
        pv = random_floats(static_cast<size_t>(4 * P * L), seed + 1);
        m.put(x, xv);
        m.put(pe, pv);
    }

    void check() {
        std::vector<double> v(xv.begin(), xv.end());
        for (int s = 0; s < n; ++s) {
            for (size_t i = 0; i < v.size(); ++i) {
                v[i] = 0.5 * (v[i] + xv[i]);
            }
            for (int64_t r = 0; r < H * L; ++r) {
                for (int64_t i = 0; i < P; ++i) {
                    const auto    a = static_cast<size_t>(r * D + 2 * i);
                    const float * k = &pv[static_cast<size_t>((r / H * P + i) * 4)];
                    const double  p = v[a], q = v[a + 1];
                    v[a]     = k[0] * p + k[1] * q;
                    v[a + 1] = k[2] * p + k[3] * q;
                }
            }
        }
        check_close(m.take<float>(y), v, 1e-5);
    }

    // every byte of the graph's memory that no input holds becomes NaN
    void poison() {
        for (int i = 0; i < m.g.base.ggml_graph_n_nodes(m.graph); ++i) {
            ggml_tensor * t = m.g.base.ggml_graph_node(m.graph, i);
            m.put(t, std::vector<float>(m.g.base.ggml_nbytes(t) / 4, std::nanf("")));
        }
    }

    std::vector<float> xv, pv;
};

} // namespace

TEST_CASE("SERV-2: the ordinal of the device, before there is a backend") {
    const auto ordinal_of = reinterpret_cast<ggml_ext_cuda_device_v1_t>(ggml_ext_get_service(attached_gpu(), "ggml_ext_cuda_device_v1"));
    REQUIRE((ordinal_of != nullptr));
    int32_t ordinal = -1;
    CHECK_OK(ordinal_of(attached_gpu(), &ordinal));
    int n = 0;
    REQUIRE(cudaGetDeviceCount(&n) == cudaSuccess);
    CHECK(ordinal >= 0);
    CHECK(ordinal < n);
}

TEST_CASE("CAP-1: results with poisoned intermediates, from warm-up to a thousand replays, contents changed each time") {
    kernel_library library;
    model          m;
    chain          c(m, 12);
    m.allocate();
    for (uint32_t i = 0; i < 1003; ++i) {
        if (i < 20 || i % 100 == 0) {
            c.poison();
            c.set(i);
            m.compute();
            c.check();
        } else {
            m.compute();
        }
    }
    c.check();
    CHECK(m.stats().n_recorded == (graphs_disabled() ? 0u : 1u));
    CHECK(m.stats().n_replayed == (graphs_disabled() ? 0u : 1002u));
}

TEST_CASE("CAP-1: freed and allocated again between replays; other shapes in between") {
    kernel_library library;
    model          m;
    chain          c(m, 4);
    for (int round = 0; round < 4; ++round) {
        m.allocate();
        for (uint32_t i = 0; i < 4; ++i) {
            c.set(100 * static_cast<uint32_t>(round) + i);
            m.compute();
            c.check();
        }
        // another graph of the same scheduler takes the memory
        model other;
        chain d(other, 3, 5 + round);
        other.allocate();
        for (uint32_t i = 0; i < 3; ++i) {
            d.set(i);
            other.compute();
            d.check();
        }
    }
}

TEST_CASE("CAP-2: an equal graph, built anew, takes over the recording") {
    kernel_library      library;
    model               m;
    ggml_cgraph * const first = m.graph;
    for (int i = 0; i < 3; ++i) {
        m.graph = m.g.base.ggml_new_graph_custom(m.ctx, 256, false);
        chain c(m, 5);
        m.allocate();
        for (uint32_t k = 0; k < 3; ++k) {
            c.set(k);
            m.compute();
            c.check();
        }
    }
    m.graph = first;
    CHECK(m.stats().n_recorded == (graphs_disabled() ? 0u : 1u));
    CHECK(m.stats().n_reused == (graphs_disabled() ? 0u : 2u));
}

TEST_CASE("CAP-1: inside an enclosing capture the plan records itself") {
    kernel_library library;
    model          m;
    chain          c(m, 6);
    m.allocate();
    c.set(1);
    m.compute(); // lazy things
    cudaStream_t    stream;
    cudaEvent_t     begun, ended;
    cudaGraph_t     graph;
    cudaGraphExec_t exec;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&begun, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&ended, cudaEventDisableTiming) == cudaSuccess);
    ggml_backend_event joined{find_gpu(), begun}, left{find_gpu(), ended};
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
    REQUIRE(cudaEventRecord(begun, stream) == cudaSuccess);
    m.g.base.ggml_backend_event_wait(m.backend, &joined);
    REQUIRE_MESSAGE(m.g.base.ggml_backend_graph_compute_async(m.backend, m.graph) == GGML_COMPUTE_SUCCESS, ggml_ext_last_error());
    m.g.base.ggml_backend_event_record(&left, m.backend);
    REQUIRE(cudaStreamWaitEvent(stream, ended, 0) == cudaSuccess);
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
    for (uint32_t i = 2; i < 5; ++i) {
        c.poison();
        c.set(i);
        REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
        REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
        c.check();
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaEventDestroy(begun);
    cudaEventDestroy(ended);
    cudaStreamDestroy(stream);
    c.set(9);
    m.compute();
    c.check();
}

TEST_CASE("CAP-1: a kernel that fails in a capture, and one that breaks it") {
    for (const bool breaks : {false, true}) {
        CAPTURE(breaks);
        kernel_library library;
        registration   kernel;
        struct state {
            ggml_ext_cuda_context_v1_t context;
            bool                       breaks;
            int                        refused = 0;
        } s{reinterpret_cast<ggml_ext_cuda_context_v1_t>(ggml_ext_get_service(attached_gpu(), "ggml_ext_cuda_context_v1")), breaks};
        ggml_ext_kernel_desc desc{};
        desc.struct_size = sizeof(desc);
        desc.name        = "test.sqr";
        desc.op          = "SQR";
        desc.user_data   = &s;
        desc.supports    = [](const ggml_ext_node *, void *) -> int32_t { return 1; };
        desc.execute     = [](const ggml_ext_exec_params * p, void * user_data) -> int { // copies
            auto &                the = *static_cast<state *>(user_data);
            ggml_ext_cuda_context cuda{};
            cuda.struct_size = sizeof(cuda);
            if (the.context(p->backend, &cuda) != GGML_EXT_STATUS_SUCCESS) {
                return GGML_EXT_STATUS_FAILED;
            }
            auto *                  stream = static_cast<cudaStream_t>(cuda.stream);
            cudaStreamCaptureStatus capture;
            cudaStreamIsCapturing(stream, &capture);
            if (capture != cudaStreamCaptureStatusNone) {
                ++the.refused;
                if (the.breaks) {
                    cudaStreamSynchronize(stream);
                    cudaGetLastError();
                    return GGML_EXT_STATUS_SUCCESS;
                }
                ggml_ext_set_error("not inside a capture");
                return GGML_EXT_STATUS_UNSUPPORTED;
            }
            const ggml_ext_node & node = *p->nodes[0];
            return cudaMemcpyAsync(node.dst->data, node.src[0]->data, node.dst->nbytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess
                           ? GGML_EXT_STATUS_SUCCESS
                           : GGML_EXT_STATUS_FAILED;
        };
        REQUIRE_OK(ggml_ext_register_kernel_ex(attached_gpu(), &desc, GGML_EXT_KERNEL_CAPTURE_SAFE, &kernel.handle));
        model         m;
        ggml_tensor * x = m.input(F32, {256});
        ggml_tensor * y = m.g.ggml_scale(m.ctx, m.g.ggml_sqr(m.ctx, m.g.ggml_scale(m.ctx, x, 2.0f)), 3.0f);
        m.expand(y);
        m.allocate();
        const auto xv = random_floats(256, 1);
        m.put(x, xv);
        for (int i = 0; i < 5; ++i) {
            m.compute();
            std::vector<double> expected;
            for (const float v : xv) {
                expected.push_back(6.0 * v);
            }
            check_close(m.take<float>(y), expected, 1e-6);
        }
        CHECK(s.refused == (graphs_disabled() ? 0 : 1));
        CHECK(m.stats().n_recorded == 0);
    }
}

TEST_CASE("CAP-1: two backends on two threads, each with recordings of its own") {
    kernel_library library;
    const auto     work = [](uint32_t seed) {
        model m;
        chain c(m, 5, 8 + static_cast<int64_t>(seed % 3));
        m.allocate();
        for (uint32_t i = 0; i < 30; ++i) {
            c.set(seed + i);
            m.compute();
            c.check();
        }
    };
    std::thread other(work, 1000u);
    work(2000u);
    other.join();
}

TEST_CASE("COMPAT-2: a graph without any of our kernels runs as before beside recordings") {
    kernel_library library;
    model          m;
    ggml_tensor *  a = m.input(F32, {64, 32});
    ggml_tensor *  b = m.input(F32, {64, 48});
    ggml_tensor *  y = m.g.base.ggml_mul_mat(m.ctx, a, b);
    m.expand(y);
    m.allocate();
    const auto av = random_floats(64 * 32, 1), bv = random_floats(64 * 48, 2);
    m.put(a, av);
    m.put(b, bv);
    for (int i = 0; i < 4; ++i) {
        m.compute();
    }
    std::vector<double> expected;
    for (size_t j = 0; j < 48; ++j) {
        for (size_t i = 0; i < 32; ++i) {
            double sum = 0;
            for (size_t k = 0; k < 64; ++k) {
                sum += static_cast<double>(av[i * 64 + k]) * bv[j * 64 + k];
            }
            expected.push_back(sum);
        }
    }
    check_close(m.take<float>(y), expected, 5e-3); // ggml's own precision
}
