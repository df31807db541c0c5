package org.ggmlext.examples.minilm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.examples.int8.Int8CheckpointWriter;
import org.ggmlext.examples.minilm.MiniLmWeights.Dense;
import org.ggmlext.examples.minilm.MiniLmWeights.Layer;
import org.ggmlext.ext.ops.Int8Checkpoint;
import org.ggmlext.ext.ops.Int8Layer;

/**
 * MiniLM in a safetensors file whose dense layers are INT8, rotated in groups of 256 features, or
 * 64 where 256 does not divide them; embeddings and norms stay F32. An attention's query, key and
 * value are one layer, {@code query_key_value}.
 */
public final class MiniLmInt8 {
  private static final int GROUP = 256;
  private static final String BIAS = ".bias";

  private MiniLmInt8() {}

  /**
   * Writes the file.
   *
   * @param weights in F32
   * @param file replaced, if it is there
   * @throws GgmlException if it cannot be written
   */
  public static void write(MiniLmWeights<Weight> weights, Path file) {
    Int8CheckpointWriter writer = new Int8CheckpointWriter();
    add(writer, weights.wordEmbeddings());
    add(writer, weights.positionEmbeddings());
    add(writer, weights.tokenTypeEmbeddings());
    add(writer, weights.embeddingNorm());
    for (Layer<Weight> layer : weights.layers()) {
      add(writer, layer.queryKeyValue());
      add(writer, layer.attentionOutput());
      add(writer, layer.attentionNorm());
      add(writer, layer.feedForwardInner());
      add(writer, layer.feedForwardOutput());
      add(writer, layer.outputNorm());
    }
    writer.write(file);
  }

  private static void add(Int8CheckpointWriter writer, Weight weight) {
    writer.add(weight.name(), Shape.of(weight.ne0(), weight.ne1()), weight.data());
  }

  private static void add(Int8CheckpointWriter writer, MiniLmWeights.Norm<Weight> norm) {
    add(writer, norm.scale());
    add(writer, norm.shift());
  }

  private static void add(Int8CheckpointWriter writer, Dense<Weight> dense) {
    String bias = dense.bias().name();
    String module = bias.substring(0, bias.length() - BIAS.length());
    writer.addLayer(module, dense.matrix().data(), dense.matrix().ne0(), GROUP);
    add(writer, dense.bias());
  }

  /**
   * An encoder with dense layers in INT8 for weights in F32: they are converted into a temporary
   * file.
   *
   * @param threads as {@link MiniLmEncoder#int8} takes them
   * @throws IOException if there cannot be a temporary file
   */
  public static MiniLmEncoder encoder(MiniLmWeights<Weight> weights, int threads)
      throws IOException {
    Path file = Files.createTempFile("minilm-int8", ".safetensors");
    try {
      write(weights, file);
      return MiniLmEncoder.int8(file, threads);
    } finally {
      Files.delete(file);
    }
  }

  /**
   * Reads the file.
   *
   * @param context where the tensors are made
   * @param allocate gives the context's tensors their memory
   * @throws GgmlException if the file cannot be read, or is not MiniLM; the message says why
   */
  static MiniLmWeights<Tensor> read(Path file, Context context, Runnable allocate) {
    try (Safetensors safetensors = Safetensors.open(file)) {
      Reader reader = new Reader(safetensors, context);
      MiniLmWeights<Tensor> weights = MiniLmWeights.of(reader);
      allocate.run();
      reader.loads.forEach(Runnable::run);
      return weights;
    }
  }

  /** Makes tensors, and notes what is to be read into them. */
  private static final class Reader implements MiniLmWeights.Source<Tensor> {
    private final Safetensors file;
    private final Context context;
    private final Int8Checkpoint checkpoint;
    private final List<Runnable> loads = new ArrayList<>();

    Reader(Safetensors file, Context context) {
      this.file = file;
      this.context = context;
      this.checkpoint = Int8Checkpoint.of(file);
    }

    @Override
    public Tensor matrix(String name, int rows, int columns) {
      Tensor tensor = named(name, n -> file.newTensor(context, n));
      expect(name, tensor, Type.F32, Shape.of(columns, rows));
      loads.add(() -> file.load(name, tensor));
      return tensor;
    }

    @Override
    public Tensor vector(String name, int n) {
      return matrix(name, 1, n);
    }

    @Override
    public Dense<Tensor> dense(String name, int in, int out) {
      Int8Layer layer = named(name, n -> checkpoint.newLayer(context, n));
      Tensor matrix = layer.linear().weight();
      Tensor bias = layer.linear().bias();
      expect(name, matrix, Type.I8, Shape.of(in, out));
      if (bias == null) {
        throw new GgmlException(file.path() + ": " + name + " has no bias");
      }
      loads.add(() -> checkpoint.load(name, layer));
      return new Dense<>(matrix, bias, layer.linear().weightScale(), layer.group());
    }

    @Override
    public Dense<Tensor> stacked(String name, List<String> parts, int in, int out) {
      return dense(name, in, parts.size() * out);
    }

    private <R> R named(String name, Function<String, R> make) {
      try {
        return make.apply(name);
      } catch (IllegalArgumentException e) {
        throw new GgmlException("no MiniLM: " + e.getMessage(), e);
      }
    }

    private void expect(String name, Tensor tensor, Type type, Shape shape) {
      if (tensor.type() != type || !tensor.shape().equals(shape)) {
        throw new GgmlException(
            "%s: \"%s\" is %s %s, expected %s %s"
                .formatted(file.path(), name, tensor.type(), tensor.shape(), type, shape));
      }
    }
  }
}
