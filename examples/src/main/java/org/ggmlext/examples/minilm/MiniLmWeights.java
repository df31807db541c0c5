package org.ggmlext.examples.minilm;

import static org.ggmlext.examples.minilm.MiniLm.FEED_FORWARD;
import static org.ggmlext.examples.minilm.MiniLm.HIDDEN;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.function.Function;
import java.util.stream.IntStream;

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

  /** A dense layer: {@code y = matrix * x + bias}; the matrix has one row an output. */
  public record Dense<T>(T matrix, T bias) {
    <R> Dense<R> map(Function<T, R> move) {
      return new Dense<>(move.apply(matrix), move.apply(bias));
    }
  }

  /** One layer of the encoder, in the order of its use. */
  public record Layer<T>(
      Dense<T> query,
      Dense<T> key,
      Dense<T> value,
      Dense<T> attentionOutput,
      Norm<T> attentionNorm,
      Dense<T> feedForwardInner,
      Dense<T> feedForwardOutput,
      Norm<T> outputNorm) {
    <R> Layer<R> map(Function<T, R> move) {
      return new Layer<>(
          query.map(move),
          key.map(move),
          value.map(move),
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

  static MiniLmWeights<Weight> of(OnnxWeights onnx) {
    return new MiniLmWeights<>(
        onnx.matrix("embeddings.word_embeddings.weight", MiniLm.VOCABULARY, HIDDEN),
        onnx.matrix("embeddings.position_embeddings.weight", MiniLm.POSITIONS, HIDDEN),
        onnx.matrix("embeddings.token_type_embeddings.weight", MiniLm.TOKEN_TYPES, HIDDEN),
        norm(onnx, "embeddings.LayerNorm"),
        IntStream.range(0, MiniLm.LAYERS)
            .mapToObj(index -> layer(onnx, "encoder.layer." + index + "."))
            .toList());
  }

  private static Layer<Weight> layer(OnnxWeights onnx, String prefix) {
    return new Layer<>(
        dense(onnx, prefix + "attention.self.query", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.self.key", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.self.value", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.output.dense", HIDDEN, HIDDEN),
        norm(onnx, prefix + "attention.output.LayerNorm"),
        dense(onnx, prefix + "intermediate.dense", HIDDEN, FEED_FORWARD),
        dense(onnx, prefix + "output.dense", FEED_FORWARD, HIDDEN),
        norm(onnx, prefix + "output.LayerNorm"));
  }

  private static Dense<Weight> dense(OnnxWeights onnx, String name, int in, int out) {
    String bias = name + ".bias";
    return new Dense<>(onnx.denseMatrix(bias, in, out), onnx.vector(bias, out));
  }

  private static Norm<Weight> norm(OnnxWeights onnx, String name) {
    return new Norm<>(onnx.vector(name + ".weight", HIDDEN), onnx.vector(name + ".bias", HIDDEN));
  }
}
