package org.ggmlext.benchmarks;

import java.util.concurrent.TimeUnit;
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
 * The same kernel in Java and in C, in a graph on the backend's persistent threads. A score is the
 * time of the whole graph; {@link Size} says how many nodes it has.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // JMH calls setUp first
public class KernelBenchmark {
  @Param("AFFINE")
  Work work;

  @Param({"C", "DIRECT", "JAVA"})
  Author author;

  @Param({"TINY", "ROWS"})
  Size size;

  @Param("1")
  int threads;

  private GraphBench graph;

  @Setup
  public void setUp() {
    graph = GraphBench.chain(work, author, size, threads);
    graph.fill(0.75f);
  }

  @Benchmark
  public int compute() {
    return graph.compute();
  }

  @TearDown
  public void tearDown() {
    graph.close();
  }
}
