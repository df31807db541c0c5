package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.examples.int8.Int8CheckpointWriter;
import org.ggmlext.ext.ops.Int8Checkpoint;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MiniLmInt8Test {
  private static final int THREADS = 1;
  private static final int BATCH = 32;
  private static final int TOP = 10;
  private static final double LEAST_COSINE = 0.995;

  @TempDir private static Path folder;

  private static Path file;
  private static List<int[]> sentences;

  @BeforeAll
  static void convert() throws Exception {
    file = folder.resolve("minilm.safetensors");
    MiniLmInt8.write(MiniLmWeights.load(), file);
    try (MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS)) {
      sentences = tokenizer.encode(Corpus.sentences(1000));
    }
  }

  private static float[][] encode(MiniLmEncoder encoder, List<int[]> sequences) {
    // Of one length, so that little is padded.
    Integer[] order = new Integer[sequences.size()];
    Arrays.setAll(order, i -> i);
    Arrays.sort(order, Comparator.comparingInt(i -> sequences.get(i).length));
    float[][] embeddings = new float[order.length][];
    for (int first = 0; first < order.length; first += BATCH) {
      List<Integer> part =
          Arrays.asList(order).subList(first, Math.min(first + BATCH, order.length));
      float[][] some = encoder.encode(TokenBatch.of(part.stream().map(sequences::get).toList()));
      for (int i = 0; i < some.length; i++) {
        embeddings[part.get(i)] = some[i];
      }
    }
    return embeddings;
  }

  @Test
  @DisplayName("I8-2: the file has 24 layers, in groups of 64 or 256; it is smaller than in F32")
  void writes() throws Exception {
    try (Safetensors safetensors = Safetensors.open(file)) {
      assertThat(Int8Checkpoint.of(safetensors).layers())
          .hasSize(24)
          .contains("encoder.layer.5.attention.self.query_key_value");
      assertThat(text(safetensors, "encoder.layer.0.output.dense")).contains("_groupsize\": 256}");
      assertThat(text(safetensors, "encoder.layer.0.intermediate.dense"))
          .contains("_groupsize\": 64}");
    }
    // 10.6 of 22.6 million weights become bytes.
    assertThat(Files.size(file)).isBetween(58_000_000L, 60_000_000L);
  }

  private static String text(Safetensors file, String module) {
    return new String(
        file.data(module + ".comfy_quant").toArray(ValueLayout.JAVA_BYTE), StandardCharsets.UTF_8);
  }

  @Test
  @DisplayName(
      "I8-1, I8-2: 200 sentences in INT8 have a mean cosine of 0.995 with ONNX Runtime in F32")
  void equalsOnnxRuntime() throws Exception {
    double sum = 0;
    double least = 1;
    try (MiniLmEncoder encoder = MiniLmEncoder.int8(file, THREADS);
        OnnxOracle oracle = new OnnxOracle()) {
      float[][] embeddings = encode(encoder, sentences.subList(0, 200));
      for (int i = 0; i < embeddings.length; i++) {
        double cosine = OnnxOracle.cosine(embeddings[i], oracle.embed(sentences.get(i)));
        sum += cosine;
        least = Math.min(least, cosine);
      }
    }
    System.out.printf(
        "INT8 against ONNX Runtime F32: mean cosine %.5f, least %.5f%n", sum / 200, least);
    assertThat(sum / 200).isGreaterThanOrEqualTo(LEAST_COSINE);
  }

  @Test
  @DisplayName(
      "I8-1, I8-2: of the top 10 of 1,000 sentences as many stay as with random errors that leave a"
          + " cosine of 0.995")
  void retrieves() throws Exception {
    float[][] exact;
    float[][] int8;
    try (MiniLmEncoder encoder = new MiniLmEncoder(MiniLmWeights.load(), true, THREADS)) {
      exact = encode(encoder, sentences);
    }
    try (MiniLmEncoder encoder = MiniLmEncoder.int8(file, THREADS)) {
      int8 = encode(encoder, sentences);
    }
    double required = overlap(exact, disturbed(exact, LEAST_COSINE));
    double overlap = overlap(exact, int8);
    System.out.printf(
        "INT8 against F32, top %d of %d sentences: overlap %.4f, required %.4f%n",
        TOP, exact.length, overlap, required);
    assertThat(overlap).isGreaterThanOrEqualTo(required);
  }

  /** Embeddings at an angle to the given ones, each in a random direction. */
  private static float[][] disturbed(float[][] embeddings, double cosine) {
    Random random = new Random(5);
    float[][] others = new float[embeddings.length][MiniLm.HIDDEN];
    for (int n = 0; n < embeddings.length; n++) {
      double[] error = new double[MiniLm.HIDDEN];
      double along = 0;
      for (int i = 0; i < error.length; i++) {
        error[i] = random.nextGaussian();
        along += error[i] * embeddings[n][i];
      }
      double squares = 0;
      for (int i = 0; i < error.length; i++) {
        error[i] -= along * embeddings[n][i];
        squares += error[i] * error[i];
      }
      double factor = Math.sqrt((1 - cosine * cosine) / squares);
      for (int i = 0; i < error.length; i++) {
        others[n][i] = (float) (cosine * embeddings[n][i] + factor * error[i]);
      }
    }
    return others;
  }

  /** The share of each sentence's most similar ones that is the same. */
  private static double overlap(float[][] some, float[][] others) {
    int common = 0;
    for (int query = 0; query < some.length; query++) {
      Set<Integer> both = top(some, query);
      both.retainAll(top(others, query));
      common += both.size();
    }
    return common / (double) (TOP * some.length);
  }

  private static Set<Integer> top(float[][] embeddings, int query) {
    double[] similar = new double[embeddings.length];
    for (int n = 0; n < similar.length; n++) {
      for (int i = 0; i < MiniLm.HIDDEN; i++) {
        similar[n] += embeddings[query][i] * embeddings[n][i];
      }
    }
    return IntStream.range(0, similar.length)
        .filter(n -> n != query)
        .boxed()
        .sorted(Comparator.comparingDouble((Integer n) -> similar[n]).reversed())
        .limit(TOP)
        .collect(Collectors.toCollection(HashSet::new));
  }

  @Test
  @DisplayName(
      "I8-1, I8-2: our kernels compute all layers, and attention over views of one layer's output")
  void plan() {
    try (MiniLmEncoder encoder = MiniLmEncoder.int8(file, THREADS)) {
      encoder.encode(TokenBatch.of(sentences.subList(0, 2)));
      Map<String, Map<String, Long>> kernels = KernelTable.of(encoder.plans().getFirst());
      assertThat(kernels.get("sd.linear_i8.v1").values().stream().mapToLong(n -> n).sum())
          .isEqualTo(24);
      assertThat(kernels.get("sd.quantize_i8_convrot.v1").values().stream().mapToLong(n -> n).sum())
          .isEqualTo(24);
      assertThat(kernels.get("sd.linear_i8.v1")).doesNotContainKey("ggml");
      assertThat(kernels).containsEntry("FLASH_ATTN_EXT", Map.of("cpu.flash_attn_ext", 6L));
    }
  }

  @Test
  @DisplayName("QUAL-1: an aborted batch fails between phases, and the next one is as ever")
  void aborts() {
    TokenBatch batch = TokenBatch.of(sentences.subList(0, 4));
    try (MiniLmEncoder encoder = MiniLmEncoder.int8(file, THREADS)) {
      float[][] expected = encoder.encode(batch);
      AtomicInteger asked = new AtomicInteger();
      encoder.setAbort(() -> asked.incrementAndGet() > 5);
      assertThatThrownBy(() -> encoder.encode(batch)).isInstanceOf(GgmlException.class);
      encoder.setAbort(null);
      assertThat(encoder.encode(batch)).isDeepEqualTo(expected);
    }
  }

  @Test
  @DisplayName("JAVA-2: a file that is not MiniLM is refused, and says what is missing")
  void refusesOtherFiles() {
    Path other = folder.resolve("other.safetensors");
    new SafetensorsWriter().add("a", (byte) 1).write(other);
    assertThatThrownBy(() -> MiniLmEncoder.int8(other, THREADS))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("has no tensor \"embeddings.word_embeddings.weight\"");
  }

  @Test
  @DisplayName("JAVA-2: a file without one of the layers is refused, and says which")
  void refusesMissingLayer() {
    String layer = "encoder.layer.5.attention.self.query_key_value";
    Path incomplete = folder.resolve("incomplete.safetensors");
    try (Safetensors whole = Safetensors.open(file)) {
      Int8CheckpointWriter writer = new Int8CheckpointWriter();
      whole.tensors().stream()
          .filter(tensor -> !tensor.name().startsWith(layer))
          .forEach(tensor -> writer.add(tensor, whole.data(tensor.name())));
      writer.write(incomplete);
    }
    assertThatThrownBy(() -> MiniLmEncoder.int8(incomplete, THREADS))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("has no layer \"" + layer + "\"");
  }

  @Test
  @DisplayName("INT8 is an option of the embedding model, which needs the extensions")
  void option() throws Exception {
    MiniLmOptions options = MiniLmOptions.defaults().withThreads(THREADS).withInt8(true);
    try (MiniLmEmbeddingModel model = MiniLmEmbeddingModel.load(options);
        MiniLmEncoder encoder = MiniLmEncoder.int8(file, THREADS);
        MiniLmTokenizer tokenizer = new MiniLmTokenizer(MiniLm.DEFAULT_MAX_TOKENS)) {
      float[] expected = encoder.encode(TokenBatch.of(tokenizer.encode(List.of("a cat sits"))))[0];
      assertThat(model.embed("a cat sits").content().vector()).isEqualTo(expected);
    }
    assertThatIllegalArgumentException()
        .isThrownBy(() -> options.withExtensions(false))
        .withMessageContaining("int8 is on, but extensions");
  }
}
