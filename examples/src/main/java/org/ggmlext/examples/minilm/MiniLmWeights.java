package org.ggmlext.examples.minilm;

import static org.ggmlext.examples.minilm.MiniLm.FEED_FORWARD;
import static org.ggmlext.examples.minilm.MiniLm.HIDDEN;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * All weights of MiniLM-L6-v2, named by what they do.
 *
 * @param <T> what holds one: a {@link Weight} in Java's memory, or a tensor on a device
 */
public record MiniLmWeights<T>(
    T wordEmbeddings,
    T positionEmbeddings,
    T tokenTypeEmbeddings,
    Norm<T> embeddingNorm,
    List<Layer<T>> layers) {

  /** Scale and shift of a layer normalisation. */
  public record Norm<T>(T scale, T shift) {
    <R> Norm<R> map(Function<T, R> move) {
      return new Norm<>(move.apply(scale), move.apply(shift));
    }
  }

  /**
   * A dense layer: {@code y = matrix * x + bias}; the matrix has one row an output.
   *
   * @param scale of an INT8 matrix: what each output is multiplied by; else null
   * @param group of an INT8 matrix: features that were rotated together
   */
  public record Dense<T>(T matrix, T bias, @Nullable T scale, int group) {
    /** A layer in F32. */
    Dense(T matrix, T bias) {
      this(matrix, bias, null, 1);
    }

    <R> Dense<R> map(Function<T, R> move) {
      return new Dense<>(
          move.apply(matrix), move.apply(bias), scale == null ? null : move.apply(scale), group);
    }
  }

  /** Where weights come from: what finds them by their names in the original model. */
  interface Source<T> {
    /** {@code rows} rows of {@code columns} values. */
    T matrix(String name, int rows, int columns);

    T vector(String name, int n);

    /** A layer with {@code name.bias}. */
    Dense<T> dense(String name, int in, int out);

    /**
     * Layers of one input as one: the outputs of the first, then those of the second, and so on.
     *
     * @param name of the one; the original model has only the parts
     * @param out outputs of each part
     */
    Dense<T> stacked(String name, List<String> parts, int in, int out);
  }

  /**
   * One layer of the encoder, in the order of its use.
   *
   * @param queryKeyValue of {@code 3 * HIDDEN} outputs: all heads' queries, then keys, then values
   */
  public record Layer<T>(
      Dense<T> queryKeyValue,
      Dense<T> attentionOutput,
      Norm<T> attentionNorm,
      Dense<T> feedForwardInner,
      Dense<T> feedForwardOutput,
      Norm<T> outputNorm) {
    <R> Layer<R> map(Function<T, R> move) {
      return new Layer<>(
          queryKeyValue.map(move),
          attentionOutput.map(move),
          attentionNorm.map(move),
          feedForwardInner.map(move),
          feedForwardOutput.map(move),
          outputNorm.map(move));
    }
  }

  public MiniLmWeights {
    layers = List.copyOf(layers);
  }

  /** The same weights, each held by what {@code move} makes of it. */
  public <R> MiniLmWeights<R> map(Function<T, R> move) {
    return new MiniLmWeights<>(
        move.apply(wordEmbeddings),
        move.apply(positionEmbeddings),
        move.apply(tokenTypeEmbeddings),
        embeddingNorm.map(move),
        layers.stream().map(layer -> layer.map(move)).toList());
  }

  /**
   * Reads the weights from the class path.
   *
   * @throws IOException if the file is missing or no ONNX model
   * @throws IllegalArgumentException if a tensor is missing or has another shape or type; the
   *     message names it
   */
  public static MiniLmWeights<Weight> load() throws IOException {
    try (InputStream in = MiniLm.openWeights()) {
      return of(OnnxWeights.read(in, MiniLm.WEIGHTS_FILE));
    }
  }

  static <T> MiniLmWeights<T> of(Source<T> source) {
    return new MiniLmWeights<>(
        source.matrix("embeddings.word_embeddings.weight", MiniLm.VOCABULARY, HIDDEN),
        source.matrix("embeddings.position_embeddings.weight", MiniLm.POSITIONS, HIDDEN),
        source.matrix("embeddings.token_type_embeddings.weight", MiniLm.TOKEN_TYPES, HIDDEN),
        norm(source, "embeddings.LayerNorm"),
        IntStream.range(0, MiniLm.LAYERS)
            .mapToObj(index -> layer(source, "encoder.layer." + index + "."))
            .toList());
  }

  private static <T> Layer<T> layer(Source<T> source, String prefix) {
    String self = prefix + "attention.self.";
    return new Layer<>(
        source.stacked(
            self + "query_key_value",
            List.of(self + "query", self + "key", self + "value"),
            HIDDEN,
            HIDDEN),
        source.dense(prefix + "attention.output.dense", HIDDEN, HIDDEN),
        norm(source, prefix + "attention.output.LayerNorm"),
        source.dense(prefix + "intermediate.dense", HIDDEN, FEED_FORWARD),
        source.dense(prefix + "output.dense", FEED_FORWARD, HIDDEN),
        norm(source, prefix + "output.LayerNorm"));
  }

  private static <T> Norm<T> norm(Source<T> source, String name) {
    return new Norm<>(
        source.vector(name + ".weight", HIDDEN), source.vector(name + ".bias", HIDDEN));
  }
}
