package org.ggmlext.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.ggmlext.examples.minilm.MiniLm;
import org.ggmlext.examples.minilm.MiniLmEncoder;
import org.ggmlext.examples.minilm.MiniLmInt8;
import org.ggmlext.examples.minilm.MiniLmWeights;
import org.ggmlext.examples.minilm.TokenBatch;

/** An engine that embeds batches of sentences. */
interface Sentences extends AutoCloseable {
  /** The embeddings, {@link MiniLm#HIDDEN} values of length 1 for each sequence. */
  float[][] encode(TokenBatch batch) throws Exception;

  @Override
  void close() throws IOException;

  /** An engine with its model loaded, on all cores. */
  static Sentences of(Engine engine) throws Exception {
    return of(engine, Runtime.getRuntime().availableProcessors());
  }

  /** An engine with its model loaded. */
  static Sentences of(Engine engine, int threads) throws Exception {
    return switch (engine) {
      case ONNX -> onnx(OnnxSentences.F32, threads);
      case ONNX_INT8 -> onnx(OnnxSentences.INT8, threads);
      case GGML -> ggml(new MiniLmEncoder(MiniLmWeights.load(), false, threads));
      case EXTENDED -> ggml(new MiniLmEncoder(MiniLmWeights.load(), true, threads));
      case INT8 -> ggml(MiniLmInt8.encoder(MiniLmWeights.load(), threads));
    };
  }

  private static Sentences onnx(String model, int threads) throws Exception {
    OnnxSentences onnx = new OnnxSentences(model, threads);
    return new Sentences() {
      @Override
      public float[][] encode(TokenBatch batch) throws Exception {
        return onnx.encode(batch);
      }

      @Override
      public void close() throws IOException {
        onnx.close();
      }
    };
  }

  private static Sentences ggml(MiniLmEncoder encoder) {
    return new Sentences() {
      @Override
      public float[][] encode(TokenBatch batch) {
        return encoder.encode(batch);
      }

      @Override
      public void close() {
        encoder.close();
      }
    };
  }

  /** Sequences of one length with the same ids in every run; no padding. */
  static TokenBatch batch(int sequences, int tokens) {
    Random random = new Random(20260101);
    List<int[]> ids = new ArrayList<>();
    for (int s = 0; s < sequences; s++) {
      int[] sequence = random.ints(tokens, 1000, MiniLm.VOCABULARY).toArray();
      sequence[0] = 101; // [CLS]
      sequence[tokens - 1] = 102; // [SEP]
      ids.add(sequence);
    }
    return TokenBatch.of(ids);
  }
}
