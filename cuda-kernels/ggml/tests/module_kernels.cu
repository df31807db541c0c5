// Kernels that tests and benchmark launch from modules. This one text is given to nvcc (a cubin, a fat binary, PTX, and code linked
// into the benchmark) and to NVRTC, so it includes nothing.

// Launched so that it may begin early, where it can wait. Its arithmetic is that of ggml's SILU, which is compiled for speed.
extern "C" __global__ void swish(const float * x, float * y, float beta, long long n) {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i >= n) {
        return;
    }
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    y[i] = __fdividef(x[i], 1.0f + __expf(-beta * x[i]));
}

// rows in reverse order of their elements, each through shared memory; a block a row
extern "C" __global__ void reverse(const float * x, float * y, int n) {
    extern __shared__ float row[];
    const long long         first = static_cast<long long>(blockIdx.x) * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        row[i] = x[first + i];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        y[first + i] = row[n - 1 - i];
    }
}

struct triple {
    int a, b, c;
};

// parameters of many sizes, and what of them arrives
extern "C" __global__ void mixed(signed char a, double b, short c, triple d, float * y) {
    y[0] = a;
    y[1] = static_cast<float>(b);
    y[2] = c;
    y[3] = static_cast<float>(d.a + 10 * d.b + 100 * d.c);
}
