package org.ggmlext.examples.minilm;

import static org.ggmlext.examples.minilm.MiniLm.FEED_FORWARD;
import static org.ggmlext.examples.minilm.MiniLm.HIDDEN;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.stream.IntStream;

/** All weights of MiniLM-L6-v2, named by what they do. */
public record MiniLmWeights(
    Weight wordEmbeddings,
    Weight positionEmbeddings,
    Weight tokenTypeEmbeddings,
    Norm embeddingNorm,
    List<Layer> layers) {

  /** Scale and shift of a layer normalisation. */
  public record Norm(Weight scale, Weight shift) {}

  /** A dense layer: {@code y = matrix * x + bias}; the matrix has one row an output. */
  public record Dense(Weight matrix, Weight bias) {}

  /** One layer of the encoder, in the order of its use. */
  public record Layer(
      Dense query,
      Dense key,
      Dense value,
      Dense attentionOutput,
      Norm attentionNorm,
      Dense feedForwardInner,
      Dense feedForwardOutput,
      Norm outputNorm) {}

  public MiniLmWeights {
    layers = List.copyOf(layers);
  }

  /**
   * Reads the weights from the class path.
   *
   * @throws IOException if the file is missing or no ONNX model
   * @throws IllegalArgumentException if a tensor is missing or has another shape or type; the
   *     message names it
   */
  public static MiniLmWeights load() throws IOException {
    try (InputStream in = MiniLm.openWeights()) {
      return of(OnnxWeights.read(in, MiniLm.WEIGHTS_FILE));
    }
  }

  static MiniLmWeights of(OnnxWeights onnx) {
    return new MiniLmWeights(
        onnx.matrix("embeddings.word_embeddings.weight", MiniLm.VOCABULARY, HIDDEN),
        onnx.matrix("embeddings.position_embeddings.weight", MiniLm.POSITIONS, HIDDEN),
        onnx.matrix("embeddings.token_type_embeddings.weight", MiniLm.TOKEN_TYPES, HIDDEN),
        norm(onnx, "embeddings.LayerNorm"),
        IntStream.range(0, MiniLm.LAYERS)
            .mapToObj(index -> layer(onnx, "encoder.layer." + index + "."))
            .toList());
  }

  private static Layer layer(OnnxWeights onnx, String prefix) {
    return new Layer(
        dense(onnx, prefix + "attention.self.query", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.self.key", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.self.value", HIDDEN, HIDDEN),
        dense(onnx, prefix + "attention.output.dense", HIDDEN, HIDDEN),
        norm(onnx, prefix + "attention.output.LayerNorm"),
        dense(onnx, prefix + "intermediate.dense", HIDDEN, FEED_FORWARD),
        dense(onnx, prefix + "output.dense", FEED_FORWARD, HIDDEN),
        norm(onnx, prefix + "output.LayerNorm"));
  }

  private static Dense dense(OnnxWeights onnx, String name, int in, int out) {
    String bias = name + ".bias";
    return new Dense(onnx.denseMatrix(bias, in, out), onnx.vector(bias, out));
  }

  private static Norm norm(OnnxWeights onnx, String name) {
    return new Norm(onnx.vector(name + ".weight", HIDDEN), onnx.vector(name + ".bias", HIDDEN));
  }
}
