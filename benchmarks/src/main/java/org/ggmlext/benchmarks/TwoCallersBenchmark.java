package org.ggmlext.benchmarks;

import java.util.concurrent.TimeUnit;
import org.ggmlext.examples.minilm.TokenBatch;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;

/** The same by two callers at once, each with a model of its own on one thread. */
@State(Scope.Thread)
@Threads(2)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // JMH calls setUp first
public class TwoCallersBenchmark {
  @Param({"ONNX", "GGML", "EXTENDED", "ONNX_INT8", "INT8"})
  Engine engine;

  @Param({"1", "32"})
  int sequences;

  @Param({"16", "128"})
  int tokens;

  private TokenBatch batch;
  private Sentences sentences;

  @Setup
  public void setUp() throws Exception {
    batch = Sentences.batch(sequences, tokens);
    sentences = Sentences.of(engine, 1);
  }

  @Benchmark
  public float[][] encode() throws Exception {
    return sentences.encode(batch);
  }

  @TearDown
  public void tearDown() throws Exception {
    sentences.close();
  }
}
