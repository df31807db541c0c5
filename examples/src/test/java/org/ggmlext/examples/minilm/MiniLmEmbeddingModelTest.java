package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.embedding.onnx.allminilml6v2.AllMiniLmL6V2EmbeddingModel;
import dev.langchain4j.model.output.Response;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class MiniLmEmbeddingModelTest {
  private static MiniLmEmbeddingModel model;
  private static List<TextSegment> segments;

  @BeforeAll
  static void load() throws Exception {
    model = MiniLmEmbeddingModel.load(MiniLmOptions.defaults().withBatchSize(8).withThreads(1));
    segments = Corpus.sentences(20).stream().map(TextSegment::from).toList();
  }

  @AfterAll
  static void close() {
    model.close();
  }

  @Test
  @DisplayName("langchain4j's model can be swapped for ours: order, vectors, token counts, size")
  void takesThePlaceOfLangchain4jsModel() {
    EmbeddingModel theirs = new AllMiniLmL6V2EmbeddingModel();

    Response<List<Embedding>> expected = theirs.embedAll(segments);
    Response<List<Embedding>> actual = model.embedAll(segments);

    assertThat(actual.content()).hasSameSizeAs(expected.content());
    for (int i = 0; i < segments.size(); i++) {
      assertThat(cosine(actual.content().get(i), expected.content().get(i)))
          .as(segments.get(i).text())
          .isGreaterThanOrEqualTo(0.9999);
    }
    assertThat(actual.tokenUsage().inputTokenCount())
        .isEqualTo(expected.tokenUsage().inputTokenCount());
    assertThat(model.dimension()).isEqualTo(theirs.dimension());
  }

  @Test
  @DisplayName("No texts give no embeddings; a blank one is refused")
  void handlesEmptyInput() {
    assertThat(model.embedAll(List.of()).content()).isEmpty();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> model.embedAll(List.of(segments.getFirst(), TextSegment.from("\u200b"))))
        .withMessageContaining("gives no token");
  }

  @Test
  @DisplayName("Platform and virtual threads embed at once and get what one thread gets")
  void isThreadSafe() throws Exception {
    List<Embedding> expected = segments.stream().map(s -> model.embed(s).content()).toList();
    for (ExecutorService threads :
        List.of(Executors.newFixedThreadPool(4), Executors.newVirtualThreadPerTaskExecutor())) {
      try (threads) {
        List<Future<Embedding>> futures = new ArrayList<>();
        segments.forEach(s -> futures.add(threads.submit(() -> model.embed(s).content())));
        for (int i = 0; i < futures.size(); i++) {
          assertThat(futures.get(i).get()).isEqualTo(expected.get(i));
        }
      }
    }
  }

  @Test
  @DisplayName(
      "A model closed while threads embed ends their calls with an IllegalStateException or a"
          + " result")
  void closesWhileInUse() throws Exception {
    MiniLmEmbeddingModel own = MiniLmEmbeddingModel.load();
    own.embed(segments.getFirst());
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      List<Future<?>> futures =
          IntStream.range(0, 60)
              .<Future<?>>mapToObj(i -> threads.submit(() -> own.embed(segments.get(i % 20))))
              .toList();
      futures.getFirst().get();
      own.close();
      own.close();
      for (Future<?> future : futures) {
        try {
          future.get();
        } catch (ExecutionException e) {
          assertThat(e).hasCauseInstanceOf(IllegalStateException.class);
        }
      }
    }
    assertThatIllegalStateException().isThrownBy(() -> own.embed("a cat sits"));
  }

  @Test
  @DisplayName("Options outside of what the model can do are refused")
  void refusesBadOptions() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MiniLmOptions.defaults().withBatchSize(0))
        .withMessage("batchSize is 0, expected at least 1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MiniLmOptions.defaults().withThreads(0))
        .withMessage("threads is 0, expected at least 1");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> MiniLmEmbeddingModel.load(MiniLmOptions.defaults().withMaxTokens(513)))
        .withMessage("maxTokens is 513, expected 3 to 512");
  }

  private static double cosine(Embedding actual, Embedding expected) {
    double[] reference = new double[expected.vector().length];
    for (int i = 0; i < reference.length; i++) {
      reference[i] = expected.vector()[i];
    }
    return OnnxOracle.cosine(actual.vector(), reference);
  }
}
