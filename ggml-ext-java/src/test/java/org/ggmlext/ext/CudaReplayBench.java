package org.ggmlext.ext;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.ggmlext.GgmlException;
import org.ggmlext.Graph;
import org.ggmlext.Tensor;
import org.ggmlext.bindings.ggml_backend_h;
import org.opentest4j.TestAbortedException;

/**
 * Figures on a GPU, no test: a graph of 200 nodes whose plan is recorded, with 20 kernels that are
 * described in Java, against the same with a native library's kernels of the same source text.
 */
final class CudaReplayBench {
  record Beta(float beta) {}

  private static final Operator<Beta> SWISH =
      Operator.of(
          "app.swish.v1", Beta.class, (sources, attributes) -> OutputSpec.like(sources.getFirst()));
  private static final String TEXT =
      """
      extern "C" __global__ void swish(const float * x, float * y, float beta, long long n) {
          const long long i = (long long) blockIdx.x * blockDim.x + threadIdx.x;
          if (i < n) y[i] = x[i] / (1.0f + expf(-beta * x[i]));
      }
      """;
  private static final int STEPS = 20;
  private static final int ROUNDS = 15;
  private static final int CALLS = 100;
  private static final int SKIPPED = 77;

  private CudaReplayBench() {}

  /** Times of one compute in microseconds: from end to end, and of the call that enqueues it. */
  private record Times(double step, double submit) {}

  /** One side: a graph with memory, whose plan is recorded. */
  private static final class Side implements AutoCloseable {
    final String name;
    final CudaBench bench = new CudaBench();
    final Graph graph;
    final List<Times> times = new ArrayList<>();

    Side(String name, String kernel) {
      this.name = name;
      Tensor x = bench.input(128, 8, 16);
      x.setFloats(CudaBench.values(x.elements(), 1));
      Tensor t = x;
      for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < 3; k++) {
          t = bench.nodes.silu(bench.nodes.scale(bench.nodes.add(t, x), 0.5f));
        }
        t =
            kernel.isEmpty()
                ? bench.nodes.scale(t, 1)
                : SWISH.create(bench.nodes, new Beta(0.5f), t);
      }
      graph = bench.graph(t);
      for (int i = 0; i < 3; i++) {
        bench.compute(graph);
      }
      compute();
      compute();
      if (!kernel.isEmpty()) {
        int steps = bench.ext.plans(bench.backend).getFirst().stepsOf(kernel).size();
        if (steps != STEPS || bench.stats().replayed() == 0) {
          throw new AssertionError(
              "%s: %d steps of %s, %s".formatted(name, steps, kernel, bench.stats()));
        }
      }
    }

    /** One compute of ggml's own interface, which returns before the GPU is done. */
    double compute() {
      long start = System.nanoTime();
      int status =
          ggml_backend_h.ggml_backend_graph_compute_async(bench.backend.handle(), graph.handle());
      double submit = (System.nanoTime() - start) / 1e3;
      ggml_backend_h.ggml_backend_synchronize(bench.backend.handle());
      if (status != 0) {
        throw new AssertionError(name + ": status " + status);
      }
      return submit;
    }

    void measure() {
      double[] submit = new double[CALLS];
      long start = System.nanoTime();
      for (int i = 0; i < CALLS; i++) {
        submit[i] = compute();
      }
      double step = (System.nanoTime() - start) / 1e3 / CALLS;
      Arrays.sort(submit);
      times.add(new Times(step, submit[CALLS / 2]));
    }

    Times median() {
      return new Times(
          times.stream().mapToDouble(Times::step).sorted().toArray()[ROUNDS / 2],
          times.stream().mapToDouble(Times::submit).sorted().toArray()[ROUNDS / 2]);
    }

    @Override
    public void close() {
      bench.close();
    }
  }

  private static Kernel described(CudaModule module) {
    CudaFunction function = module.function("swish");
    return Kernel.builder("app.swish.described", SWISH)
        .launch(
            step -> {
              long n = step.dst().elements();
              return CudaStep.of(
                  CudaLaunch.of(
                      function,
                      Dim3.covering(n, 256),
                      Dim3.of(256),
                      CudaArgument.src(0),
                      CudaArgument.dst(),
                      CudaArgument.of(step.attributes(SWISH).beta()),
                      CudaArgument.of(n)));
            });
  }

  /**
   * Measures and prints.
   *
   * @param arguments the native library, with a kernel {@code app.swish.cuda}; may be left out
   */
  public static void main(String[] arguments) {
    try {
      run(arguments.length == 0 ? null : Path.of(arguments[0]));
    } catch (TestAbortedException e) {
      System.out.println("skipped: " + e.getMessage());
      System.exit(SKIPPED);
    }
  }

  private static void run(Path library) {
    try (CudaBench first = new CudaBench()) {
      List<Side> sides = new ArrayList<>();
      try {
        sides.add(new Side("scale in place of them, ggml's own CUDA graph", ""));
        first.register(SWISH);
        if (library != null) {
          LibraryRegistration registered =
              first.own(first.ext.register(first.device, KernelLibrary.load(library)));
          sides.add(new Side("a native library's", "app.swish.cuda"));
          registered.registrations().forEach(r -> r.setEnabled(false));
        }
        first.register(described(first.own(CudaModule.compile(first.device, TEXT))));
        sides.add(new Side("described in Java, NVRTC", "app.swish.described"));
        for (int i = 0; i < ROUNDS; i++) {
          sides.forEach(Side::measure);
        }
        print(sides);
      } finally {
        sides.forEach(Side::close);
      }
    } catch (GgmlException e) {
      if (e.getMessage().contains("needs NVRTC")) {
        throw new TestAbortedException(e.getMessage(), e);
      }
      throw e;
    }
  }

  private static void print(List<Side> sides) {
    System.out.printf(
        "%n200 nodes, %d of them swish [128, 8, 16], from Java, in turn, medians of %d, us%n",
        STEPS, ROUNDS);
    System.out.printf("| %-46s | %9s | %9s | %6s |%n", "kernels", "step", "submit", "ratio");
    double base = sides.get(sides.size() - 2).median().step();
    for (Side side : sides) {
      Times times = side.median();
      System.out.printf(
          Locale.ROOT,
          "| %-46s | %9.1f | %9.1f | %6.3f |%n",
          side.name,
          times.step(),
          times.submit(),
          times.step() / base);
    }
  }
}
