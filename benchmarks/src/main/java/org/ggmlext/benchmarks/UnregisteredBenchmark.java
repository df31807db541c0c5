package org.ggmlext.benchmarks;

import java.util.concurrent.TimeUnit;
import org.ggmlext.Context;
import org.ggmlext.Ggml;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * ggml as it is against ggml with the layer attached and nothing registered. Each side has a JVM of
 * its own: a patched device stays patched.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // JMH calls setUp first
public class UnregisteredBenchmark {
  /** What ggml computes. */
  public enum Shape {
    /** 512 SCALE nodes on 32 bytes: all of it is dispatch. */
    TINY,
    /** 16 MUL_MAT nodes, 256 x 256 by 256 x 32. */
    MUL_MAT
  }

  @Param({"false", "true"})
  boolean attached;

  @Param({"TINY", "MUL_MAT"})
  Shape shape;

  @Param("1")
  int threads;

  private GraphBench graph;

  @Setup
  public void setUp() {
    Ggml ggml = Ggml.load();
    if (attached) {
      Extensions.attach(ggml);
    }
    graph =
        switch (shape) {
          case TINY -> GraphBench.chain(threads, 512, 8, 1, (context, x) -> context.scale(x, 0.5f));
          case MUL_MAT -> GraphBench.chain(threads, 16, 256, 32, UnregisteredBenchmark::product);
        };
    graph.fill(1f / 256);
  }

  private static Tensor product(Context context, Tensor x) {
    return context.mulMat(context.newTensor(Type.F32, 256, 256).asInput(), x);
  }

  @Benchmark
  public int compute() {
    return graph.compute();
  }

  @Benchmark
  public int allocateAndCompute() {
    graph.allocateAndCompute();
    return 0;
  }

  @TearDown
  public void tearDown() {
    graph.close();
  }
}
