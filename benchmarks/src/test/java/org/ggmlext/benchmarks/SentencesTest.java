package org.ggmlext.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import org.ggmlext.examples.minilm.TokenBatch;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class SentencesTest {

  @Test
  @DisplayName("All engines give the same embeddings, so that their rates compare equal work")
  void sameEmbeddings() throws Exception {
    TokenBatch batch = Sentences.batch(3, 16);
    float[][] expected = encode(Engine.ONNX, batch);
    for (Engine engine : new Engine[] {Engine.GGML, Engine.EXTENDED}) {
      float[][] actual = encode(engine, batch);
      assertThat(actual).hasDimensions(3, 384);
      for (int s = 0; s < 3; s++) {
        assertThat(dot(expected[s], expected[s])).isBetween(0.9999, 1.0001);
        assertThat(dot(actual[s], expected[s]))
            .as("%s, sentence %d", engine, s)
            .isGreaterThan(0.9999);
      }
    }
  }

  @Test
  @DisplayName("The INT8 engines give nearly the same embeddings, ours the nearer ones")
  void int8Embeddings() throws Exception {
    TokenBatch batch = Sentences.batch(8, 32);
    float[][] expected = encode(Engine.ONNX, batch);
    double ours = meanCosine(encode(Engine.INT8, batch), expected);
    double theirs = meanCosine(encode(Engine.ONNX_INT8, batch), expected);
    assertThat(ours).isGreaterThanOrEqualTo(0.995).isGreaterThan(theirs);
    assertThat(theirs).isGreaterThan(0.9);
  }

  private static double meanCosine(float[][] actual, float[][] expected) {
    double sum = 0;
    for (int s = 0; s < expected.length; s++) {
      sum += dot(actual[s], expected[s]) / expected.length;
    }
    return sum;
  }

  private static float[][] encode(Engine engine, TokenBatch batch) throws Exception {
    try (Sentences sentences = Sentences.of(engine)) {
      return sentences.encode(batch);
    }
  }

  private static double dot(float[] a, float[] b) {
    double sum = 0;
    for (int i = 0; i < a.length; i++) {
      sum += (double) a[i] * b[i];
    }
    return sum;
  }
}
