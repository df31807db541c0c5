package org.ggmlext.ext;

/**
 * Kernels of tests, in CUDA C++ and PTX. The native tests' device without a GPU computes them by
 * functions of the same names, and reads of this text no more than names and parameters.
 */
final class CudaSources {
  private CudaSources() {}

  /** What the kernels below compute, element by element. */
  static final String TEXT =
      """
      extern "C" __global__ void test_affine(const float * x, float * y, float a, float b, long long n) {
      #if __CUDA_ARCH__ >= 900
          asm volatile("griddepcontrol.wait;" ::: "memory"); // so it may begin early
      #endif
          const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
          if (i < n) {
              y[i] = a * x[i] + b;
          }
      }

      extern "C" __global__ void test_values(const float * x, float * y, int a, long long b, float c, double d) {
          const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
          y[i] = (float) (x[i] * (a + 10.0 * b + 100.0 * c + 1000.0 * d));
      }

      extern "C" __global__ void test_mul_add(const float * x, const float * w, const float * c, float * y, long long n) {
          const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
          if (i < n) {
              y[i] = x[i] * w[i] + c[i];
          }
      }
      """;

  /** {@code test_affine} again; the first comment is for the device without a GPU. */
  static final String PTX =
      """
      .version 8.0
      .target sm_80
      .address_size 64
      // .entry test_affine 8,8,4,4,8 1024 0
      .visible .entry test_affine
      (
          .param .u64 x,
          .param .u64 y,
          .param .f32 a,
          .param .f32 b,
          .param .u64 n
      )
      {
          .reg .pred %out;
          .reg .f32 %v, %s, %t;
          .reg .u32 %block, %size, %thread;
          .reg .u64 %i, %count, %from, %to, %lane;
          mov.u32 %block, %ctaid.x;
          mov.u32 %size, %ntid.x;
          mov.u32 %thread, %tid.x;
          mul.wide.u32 %i, %block, %size;
          cvt.u64.u32 %lane, %thread;
          add.u64 %i, %i, %lane;
          ld.param.u64 %count, [n];
          setp.ge.u64 %out, %i, %count;
          @%out bra DONE;
          ld.param.u64 %from, [x];
          ld.param.u64 %to, [y];
          cvta.to.global.u64 %from, %from;
          cvta.to.global.u64 %to, %to;
          shl.b64 %i, %i, 2;
          add.u64 %from, %from, %i;
          add.u64 %to, %to, %i;
          ld.global.f32 %v, [%from];
          ld.param.f32 %s, [a];
          ld.param.f32 %t, [b];
          fma.rn.f32 %v, %v, %s, %t;
          st.global.f32 [%to], %v;
      DONE:
          ret;
      }
      """;

  /** An argument that is a struct: {@code y = x * p.a + p.b}. */
  static final String STRUCT =
      """
      struct pair { float a; double b; };
      extern "C" __global__ void test_struct(const float * x, float * y, pair p, long long n) {
          const long long i = blockIdx.x * (long long) blockDim.x + threadIdx.x;
          if (i < n) {
              y[i] = x[i] * p.a + (float) p.b;
          }
      }
      """;
}
