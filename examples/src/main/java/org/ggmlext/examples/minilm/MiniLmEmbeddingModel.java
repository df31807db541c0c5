package org.ggmlext.examples.minilm;

import dev.langchain4j.data.embedding.Embedding;
import dev.langchain4j.data.segment.TextSegment;
import dev.langchain4j.model.embedding.EmbeddingModel;
import dev.langchain4j.model.output.Response;
import dev.langchain4j.model.output.TokenUsage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * MiniLM-L6-v2 for langchain4j, computed by ggml: it can take the place of {@code
 * AllMiniLmL6V2EmbeddingModel}. Texts longer than the options say are cut. Thread-safe.
 */
public final class MiniLmEmbeddingModel implements EmbeddingModel, AutoCloseable {
  private static final int SPECIAL_TOKENS = 2;

  private final MiniLmTokenizer tokenizer;
  private final MiniLmEncoder encoder;
  private final int batchSize;

  private MiniLmEmbeddingModel(MiniLmTokenizer tokenizer, MiniLmEncoder encoder, int batchSize) {
    this.tokenizer = tokenizer;
    this.encoder = encoder;
    this.batchSize = batchSize;
  }

  /** A model with {@link MiniLmOptions#defaults}; errors as in {@link #load(MiniLmOptions)}. */
  public static MiniLmEmbeddingModel load() throws IOException {
    return load(MiniLmOptions.defaults());
  }

  /**
   * Reads the weights and the tokenizer from the class path.
   *
   * @throws IOException if one of the files is missing or broken
   * @throws org.ggmlext.GgmlException if ggml or the extensions cannot be loaded
   */
  public static MiniLmEmbeddingModel load(MiniLmOptions options) throws IOException {
    MiniLmTokenizer tokenizer = new MiniLmTokenizer(options.maxTokens());
    try {
      MiniLmWeights<Weight> weights = MiniLmWeights.load();
      MiniLmEncoder encoder =
          options.int8()
              ? MiniLmInt8.encoder(weights, options.threads())
              : new MiniLmEncoder(weights, options.extensions(), options.threads());
      return new MiniLmEmbeddingModel(tokenizer, encoder, options.batchSize());
    } catch (IOException | RuntimeException | Error e) {
      tokenizer.close();
      throw e;
    }
  }

  /**
   * Embeds texts, the long ones together and the short ones together.
   *
   * @return embeddings of length 1 in the texts' order, and how many tokens they have
   * @throws IllegalArgumentException if a text is empty or blank
   * @throws IllegalStateException if the model is closed
   */
  @Override
  public Response<List<Embedding>> embedAll(List<TextSegment> segments) {
    List<int[]> sequences = tokenizer.encode(segments.stream().map(TextSegment::text).toList());
    List<Integer> byLength =
        IntStream.range(0, sequences.size())
            .boxed()
            .sorted(Comparator.comparingInt(index -> sequences.get(index).length))
            .toList();
    Embedding[] embeddings = new Embedding[sequences.size()];
    for (int first = 0; first < byLength.size(); first += batchSize) {
      List<Integer> part = byLength.subList(first, Math.min(first + batchSize, byLength.size()));
      float[][] vectors = encoder.encode(TokenBatch.of(part.stream().map(sequences::get).toList()));
      for (int i = 0; i < vectors.length; i++) {
        embeddings[part.get(i)] = Embedding.from(vectors[i]);
      }
    }
    int tokens = sequences.stream().mapToInt(ids -> ids.length - SPECIAL_TOKENS).sum();
    return Response.from(new ArrayList<>(Stream.of(embeddings).toList()), new TokenUsage(tokens));
  }

  @Override
  public int dimension() {
    return MiniLm.HIDDEN;
  }

  @Override
  public String modelName() {
    return "all-minilm-l6-v2";
  }

  /** Frees the model once running calls are done. Harmless if done before. */
  @Override
  public void close() {
    encoder.close();
    tokenizer.close();
  }
}
