#include "bench.h"

#include "ggml-ext-cuda-kernels.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace bench {

void check(cudaError_t error, const char * what) {
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
        std::exit(1);
    }
}

void check(int status) {
    if (status != GGML_EXT_CUDA_OK) {
        std::fprintf(stderr, "status %d: %s\n", status, ggml_ext_cuda_last_error());
        std::exit(1);
    }
}

memory::memory(size_t bytes) {
    static const std::vector<float> block = [] {
        std::mt19937                          random(1);
        std::uniform_real_distribution<float> range(-1, 1);
        std::vector<float>                    v(1 << 20);
        std::generate(v.begin(), v.end(), [&] { return range(random); });
        return v;
    }();
    check(cudaMalloc(reinterpret_cast<void **>(&data_), bytes), "cudaMalloc");
    for (size_t at = 0; at < bytes; at += block.size() * 4) {
        check(cudaMemcpy(data_ + at, block.data(), std::min(bytes - at, block.size() * 4), cudaMemcpyHostToDevice),
              "cudaMemcpy");
    }
}

memory::~memory() {
    cudaFree(data_);
}

std::vector<float> memory::floats(size_t offset, size_t n) const {
    std::vector<float> v(n);
    check(cudaMemcpy(v.data(), data_ + offset, n * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return v;
}

size_t apart(size_t bytes) {
    const size_t page = 4096, pages = (bytes + page - 1) / page + 37;
    return (pages | 1) * page;
}

int sets_of(size_t bytes) {
    const size_t total = size_t{1} << 30;
    return static_cast<int>(std::min<size_t>(256, std::max<size_t>(4, total / bytes)));
}

double replay_us(int sets, const std::function<void(int, cudaStream_t)> & work) {
    cudaStream_t    stream;
    cudaGraph_t     graph;
    cudaGraphExec_t executable;
    cudaEvent_t     start, stop;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    check(cudaEventCreate(&start), "cudaEventCreate");
    check(cudaEventCreate(&stop), "cudaEventCreate");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    for (int i = 0; i < sets; i++) {
        work(i, stream);
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
    std::vector<double> us;
    for (int i = 0; i < 23; i++) {
        check(cudaEventRecord(start, stream), "cudaEventRecord");
        check(cudaGraphLaunch(executable, stream), "cudaGraphLaunch");
        check(cudaEventRecord(stop, stream), "cudaEventRecord");
        check(cudaEventSynchronize(stop), "cudaEventSynchronize");
        float ms = 0;
        check(cudaEventElapsedTime(&ms, start, stop), "cudaEventElapsedTime");
        if (i >= 3) { // after warming up
            us.push_back(1e3 * ms / sets);
        }
    }
    check(cudaEventDestroy(start), "cudaEventDestroy");
    check(cudaEventDestroy(stop), "cudaEventDestroy");
    check(cudaGraphExecDestroy(executable), "cudaGraphExecDestroy");
    check(cudaGraphDestroy(graph), "cudaGraphDestroy");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    std::nth_element(us.begin(), us.begin() + static_cast<long>(us.size() / 2), us.end());
    return us[us.size() / 2];
}

double copy_us(size_t bytes) {
    const size_t half = bytes / 2 / 512 * 512, step = apart(half);
    const int    sets = sets_of(bytes);
    const memory m(static_cast<size_t>(sets) * 2 * step);
    return replay_us(sets, [&](int set, cudaStream_t stream) {
        char * from = m.data() + static_cast<size_t>(set) * 2 * step;
        check(cudaMemcpyAsync(from + step, from, half, cudaMemcpyDeviceToDevice, stream), "cudaMemcpyAsync");
    });
}

// GB/s, read and written, of the fastest of some large copies.
double ceiling() {
    static const double fastest = [] {
        double best = 0;
        for (size_t mib : {256, 512, 1024}) {
            best = std::max(best, 1e-3 * static_cast<double>(mib << 20) / copy_us(mib << 20));
        }
        return best;
    }();
    return fastest;
}

void table_head(const char * title, const char * error) {
    std::printf("\n### %s\n\n| shape | %s | us | copy of the same bytes us | ours / copy | GB/s | share of the "
                "fastest copy |\n|---|---|---|---|---|---|---|\n",
                title, error);
}

void table_row(const row & r) {
    const double copy = copy_us(r.bytes), rate = 1e-3 * static_cast<double>(r.bytes) / r.us;
    std::printf("| %s | %.2g | %.1f | %.1f | %.2f | %.0f | %.0f %% |\n", r.shape, r.error, r.us, copy, r.us / copy,
                rate, 100 * rate / ceiling());
    std::fflush(stdout);
}

} // namespace bench

int main(int argc, char ** argv) {
    const struct {
        const char * name;
        void (*run)();
    } families[] = {{"rope", rope_bench},
                    {"quantize_i8", quantize_i8_bench},
                    {"rescale_i8", rescale_i8_bench},
                    {"convrot_fused", convrot_fused_bench}};

    cudaDeviceProp device;
    int            driver = 0, runtime = 0;
    bench::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    bench::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
    bench::check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
    bench::check(ggml_ext_cuda_load());
    std::printf("device: %s, driver API %d, runtime %d\n", device.name, driver, runtime);
    std::printf("fastest large copy: %.0f GB/s read and written\n", bench::ceiling());
    for (const auto & family : families) {
        if (argc < 2 || std::strcmp(argv[1], family.name) == 0) {
            family.run();
        }
    }
    return 0;
}
