package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.onnxruntime.OrtException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.ggmlext.Backend;
import org.ggmlext.Ggml;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.Operator;
import org.ggmlext.ext.Registration;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MiniLmEncoderTest {
  private static final double LEAST_COSINE = 0.9999;

  // One thread waits for no other, however busy the machine is.
  private static final int THREADS = 1;

  private static MiniLmWeights<Weight> weights;
  private static List<int[]> sentences;
  private static OnnxOracle oracle;

  @BeforeAll
  static void load() throws Exception {
    weights = MiniLmWeights.load();
    oracle = new OnnxOracle();
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.POSITIONS)) {
      sentences = tokenizer.encode(Corpus.sentences(216));
    }
  }

  @AfterAll
  static void close() throws Exception {
    oracle.close();
  }

  @ParameterizedTest(name = "extensions {0}")
  @ValueSource(booleans = {false, true})
  @DisplayName(
      "216 sentences in ragged batches of 1, 8 and 32 have a cosine of 0.9999 with ONNX Runtime")
  void equalsOnnxRuntime(boolean extended) throws Exception {
    try (MiniLmEncoder encoder = new MiniLmEncoder(weights, extended, THREADS)) {
      compare(encoder, sentences.subList(0, 24), 1);
      compare(encoder, sentences.subList(24, 88), 8);
      compare(encoder, sentences.subList(88, 216), 32);
    }
  }

  @ParameterizedTest(name = "extensions {0}")
  @ValueSource(booleans = {false, true})
  @DisplayName(
      "Sequences of 1 to 512 tokens, together and alone, have a cosine of 0.9999 with ONNX Runtime")
  void equalsOnnxRuntimeForAnyLength(boolean extended) throws Exception {
    int[] text = sentences.stream().flatMapToInt(IntStream::of).limit(MiniLm.POSITIONS).toArray();
    List<int[]> sequences =
        IntStream.of(1, 2, 3, 17, 64, 127, 128, 129, 200)
            .mapToObj(length -> IntStream.of(text).limit(length).toArray())
            .toList();

    try (MiniLmEncoder encoder = new MiniLmEncoder(weights, extended, THREADS)) {
      compare(encoder, sequences, sequences.size());
      compare(encoder, sequences.subList(0, 3), 1);
      compare(encoder, List.of(text), 1);
    }
  }

  @Test
  @DisplayName(
      "JAVA-3, JAVA-5: a Java kernel, a Java override and a C kernel run their steps of the graph")
  void runsExtensions() {
    try (MiniLmEncoder encoder = new MiniLmEncoder(weights, true)) {
      encoder.encode(TokenBatch.of(sentences.subList(0, 2)));

      Map<String, Map<String, Long>> kernels = KernelTable.of(encoder.plans().getFirst());

      assertThat(kernels)
          .containsEntry("minilm.pool_normalize.v1", Map.of("minilm.pool_normalize.java", 1L))
          .containsEntry("minilm.residual_norm.v1", Map.of("minilm.residual_norm.c", 12L))
          .containsEntry("FLASH_ATTN_EXT", Map.of("cpu.flash_attn_ext", 6L))
          .containsEntry(
              "MUL_MAT",
              Map.of(
                  "cpu.mul_mat_bias", 6L,
                  "cpu.mul_mat_bias_gelu_erf", 6L,
                  "cpu.mul_mat_f32", 12L));

      encoder.encode(TokenBatch.of(List.of(new int[] {101, 1037, 102})));

      assertThat(KernelTable.of(encoder.plans().getFirst()))
          .as("three rows: the products are ggml's, and GELU is not taken along")
          .containsEntry("UNARY", Map.of("minilm.gelu_erf.java", 6L));
    }
  }

  @Test
  @DisplayName("Batches of the same sizes, others between them, get what each gets alone")
  void keepsNothingOfTheBatchBefore() {
    TokenBatch padded = TokenBatch.of(List.of(sentences.get(0), sentences.get(1)));
    int[] longest = new int[padded.length()];
    System.arraycopy(
        sentences.get(2), 0, longest, 0, Math.min(longest.length, sentences.get(2).length));
    TokenBatch full = TokenBatch.of(List.of(longest, longest));
    TokenBatch other = TokenBatch.of(sentences.subList(3, 6));
    try (MiniLmEncoder alone = new MiniLmEncoder(weights, true, THREADS);
        MiniLmEncoder encoder = new MiniLmEncoder(weights, true, THREADS)) {
      float[][] first = alone.encode(padded);
      float[][] third = alone.encode(other);
      float[][] second = alone.encode(full);
      assertThat(encoder.encode(full)).isDeepEqualTo(second);
      assertThat(encoder.encode(padded)).isDeepEqualTo(first);
      assertThat(encoder.encode(padded)).isDeepEqualTo(first);
      assertThat(encoder.encode(other)).isDeepEqualTo(third);
      assertThat(encoder.encode(full)).isDeepEqualTo(second);
    }
  }

  @Test
  @DisplayName("JAVA-2: an encoder is closed twice without harm, and refuses to encode afterwards")
  void refusesUseAfterClose() {
    MiniLmEncoder encoder = new MiniLmEncoder(weights, true);
    encoder.close();
    encoder.close();

    assertThatIllegalStateException()
        .isThrownBy(() -> encoder.encode(TokenBatch.of(sentences.subList(0, 1))))
        .withMessage("the encoder is closed");
  }

  @Test
  @DisplayName(
      "CORE-4: encoders share the extensions, and register them anew after the last was closed")
  void sharesExtensions() {
    TokenBatch batch = TokenBatch.of(sentences.subList(0, 1));
    float[][] first;
    try (MiniLmEncoder one = new MiniLmEncoder(weights, true)) {
      try (MiniLmEncoder two = new MiniLmEncoder(weights, true)) {
        first = two.encode(batch);
      }
      assertThat(one.encode(batch)).isDeepEqualTo(first);
    }
    try (MiniLmEncoder again = new MiniLmEncoder(weights, true)) {
      assertThat(again.encode(batch)).isDeepEqualTo(first);
    }
  }

  private static void assertWithdrawn() {
    Extensions layer = Extensions.attach(Ggml.load());
    for (Operator<?> operator : List.of(PoolNormalize.OPERATOR, ResidualNorm.OPERATOR)) {
      // Were it still registered, its name would be taken.
      layer.register(operator).close();
    }
  }

  @Test
  @DisplayName("JAVA-2, CORE-4: where there is no backend or scheduler, nothing stays open")
  void closesWhatItMade() {
    IllegalStateException thrown = new IllegalStateException("no backend");
    assertThatThrownBy(
            () ->
                MiniLmEncoder.on(
                    device -> {
                      throw thrown;
                    },
                    weights,
                    THREADS))
        .isSameAs(thrown);
    assertWithdrawn();

    // A closed backend has no threads to be set, and no scheduler.
    List<Backend> made = new ArrayList<>();
    assertThatIllegalStateException()
        .isThrownBy(
            () ->
                MiniLmEncoder.on(
                    device -> {
                      Backend backend = device.newBackend();
                      backend.close();
                      made.add(backend);
                      return backend;
                    },
                    weights,
                    THREADS));
    assertThat(made).hasSize(1);
    assertWithdrawn();
  }

  @Test
  @DisplayName("CORE-4: extensions that cannot all be registered are withdrawn")
  void withdrawsExtensions() {
    Extensions layer = Extensions.attach(Ggml.load());
    try (Registration _ = layer.register(ResidualNorm.OPERATOR)) {
      assertThatIllegalArgumentException().isThrownBy(() -> MiniLmExtensions.register(Ggml.load()));
      layer.register(PoolNormalize.OPERATOR).close();
    }
    MiniLmExtensions.register(Ggml.load()).close();
    assertWithdrawn();
  }

  private static void compare(MiniLmEncoder encoder, List<int[]> sequences, int batchSize)
      throws OrtException {
    for (int first = 0; first < sequences.size(); first += batchSize) {
      List<int[]> part = sequences.subList(first, Math.min(first + batchSize, sequences.size()));
      float[][] embeddings = encoder.encode(TokenBatch.of(part));
      assertThat(embeddings).hasDimensions(part.size(), MiniLm.HIDDEN);
      for (int i = 0; i < part.size(); i++) {
        assertThat(OnnxOracle.cosine(embeddings[i], oracle.embed(part.get(i))))
            .as("sequence %d, %d tokens, batch of %d", first + i, part.get(i).length, part.size())
            .isGreaterThanOrEqualTo(LEAST_COSINE);
        assertThat(norm(embeddings[i])).isBetween(0.99999, 1.00001);
      }
    }
  }

  private static double norm(float[] vector) {
    double squares = 0;
    for (float value : vector) {
      squares += (double) value * value;
    }
    return Math.sqrt(squares);
  }
}
