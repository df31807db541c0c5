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

/** Sentence embeddings with MiniLM-L6-v2, from token ids to unit vectors. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@SuppressWarnings("NullAway.Init") // JMH calls setUp first
public class SentenceBenchmark {
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
    sentences = open();
  }

  /** The embeddings by this engine, on as many threads as it likes. */
  Sentences open() throws Exception {
    return Sentences.of(engine);
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
