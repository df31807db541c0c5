package org.ggmlext.examples.minilm;

import com.google.protobuf.InvalidProtocolBufferException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.ggmlext.examples.minilm.MiniLmWeights.Dense;
import org.ggmlext.examples.onnx.GraphProto;
import org.ggmlext.examples.onnx.ModelProto;
import org.ggmlext.examples.onnx.NodeProto;
import org.ggmlext.examples.onnx.TensorProto;
import org.jspecify.annotations.Nullable;

/**
 * The F32 weights inside an ONNX model.
 *
 * <p>An exporter keeps the names of biases and norms, but it transposes the matrices of dense
 * layers and calls them {@code onnx::MatMul_787}. Such a matrix is found by what it does: it is
 * multiplied with the activations whose sum with the layer's bias comes next.
 */
final class OnnxWeights implements MiniLmWeights.Source<Weight> {

  private final String source;
  private final Map<String, TensorProto> initializers = new HashMap<>();
  private final Map<String, NodeProto> producers = new HashMap<>();
  private final List<NodeProto> nodes;

  private OnnxWeights(String source, GraphProto graph) {
    this.source = source;
    this.nodes = graph.getNodeList();
    graph.getInitializerList().forEach(tensor -> initializers.put(tensor.getName(), tensor));
    for (NodeProto node : nodes) {
      node.getOutputList().forEach(output -> producers.put(output, node));
    }
  }

  /**
   * Reads a model.
   *
   * @param source what messages call it
   * @throws IOException if reading fails, or these bytes are no ONNX model
   */
  static OnnxWeights read(InputStream in, String source) throws IOException {
    ModelProto model;
    try {
      model = ModelProto.parseFrom(in);
    } catch (InvalidProtocolBufferException e) {
      throw new IOException(source + " is no ONNX model: " + e.getMessage(), e);
    }
    if (!model.hasGraph() || model.getGraph().getInitializerCount() == 0) {
      throw new IOException(source + " is no ONNX model with weights: it holds no initializers");
    }
    return new OnnxWeights(source, model.getGraph());
  }

  /** The vector {@code name} of length {@code n}. */
  @Override
  public Weight vector(String name, int n) {
    return new Weight(name, n, 1, floats(initializer(name), n));
  }

  /** The matrix {@code name} of {@code rows} rows of {@code columns} values. */
  @Override
  public Weight matrix(String name, int rows, int columns) {
    return new Weight(name, columns, rows, floats(initializer(name), rows, columns));
  }

  @Override
  public Dense<Weight> dense(String name, int in, int out) {
    String bias = name + ".bias";
    return new Dense<>(denseMatrix(bias, in, out), vector(bias, out));
  }

  @Override
  public Dense<Weight> stacked(String name, List<String> parts, int in, int out) {
    int outputs = parts.size() * out;
    FloatBuffer matrix = FloatBuffer.allocate(in * outputs);
    FloatBuffer bias = FloatBuffer.allocate(outputs);
    for (String part : parts) {
      Dense<Weight> layer = dense(part, in, out);
      matrix.put(layer.matrix().data());
      bias.put(layer.bias().data());
    }
    return new Dense<>(
        new Weight(name + ".weight", in, outputs, matrix.array()),
        new Weight(name + ".bias", outputs, 1, bias.array()));
  }

  /**
   * The matrix of the dense layer whose bias is {@code bias}, with one row of {@code in} values for
   * each of the {@code out} outputs, as ggml's matrix product wants it.
   */
  Weight denseMatrix(String bias, int in, int out) {
    TensorProto stored = initializer(matrixNameOf(bias));
    float[] columns = floats(stored, in, out);
    float[] rows = new float[columns.length];
    for (int o = 0; o < out; o++) {
      for (int i = 0; i < in; i++) {
        rows[o * in + i] = columns[i * out + o];
      }
    }
    return new Weight(stored.getName(), in, out, rows);
  }

  private String matrixNameOf(String bias) {
    initializer(bias);
    for (NodeProto add : nodes) {
      if (!add.getOpType().equals("Add") || !add.getInputList().contains(bias)) {
        continue;
      }
      for (String input : add.getInputList()) {
        @Nullable NodeProto product = producers.get(input);
        if (product != null
            && product.getOpType().equals("MatMul")
            && product.getInputCount() == 2
            && initializers.containsKey(product.getInput(1))) {
          return product.getInput(1);
        }
      }
    }
    throw new IllegalArgumentException(
        source + ": no MatMul with a stored matrix feeds the Add of " + bias);
  }

  private TensorProto initializer(String name) {
    @Nullable TensorProto tensor = initializers.get(name);
    if (tensor == null) {
      throw new IllegalArgumentException(
          source
              + " has no initializer "
              + name
              + "; it has "
              + new TreeSet<>(initializers.keySet()));
    }
    return tensor;
  }

  private float[] floats(TensorProto tensor, int... expected) {
    String what = source + ": initializer " + tensor.getName();
    List<Long> dims = tensor.getDimsList();
    boolean same = dims.size() == expected.length;
    int count = 1;
    for (int i = 0; i < expected.length; i++) {
      same = same && dims.get(i) == expected[i];
      count = Math.multiplyExact(count, expected[i]);
    }
    if (!same) {
      throw new IllegalArgumentException(
          what + " has the shape " + dims + ", expected " + Arrays.toString(expected));
    }
    if (tensor.getDataType() != TensorProto.DataType.FLOAT_VALUE) {
      throw new IllegalArgumentException(
          what + " has the ONNX data type " + tensor.getDataType() + ", expected 1 (FLOAT)");
    }
    if (tensor.getDataLocation() != 0) {
      throw new IllegalArgumentException(what + " lies in another file, expected it in the model");
    }
    float[] values = new float[count];
    if (tensor.getFloatDataCount() == count) {
      for (int i = 0; i < count; i++) {
        values[i] = tensor.getFloatData(i);
      }
    } else if (tensor.getRawData().size() == 4L * count) {
      tensor
          .getRawData()
          .asReadOnlyByteBuffer()
          .order(ByteOrder.LITTLE_ENDIAN)
          .asFloatBuffer()
          .get(values);
    } else {
      throw new IllegalArgumentException(
          what
              + " holds "
              + tensor.getRawData().size()
              + " bytes and "
              + tensor.getFloatDataCount()
              + " floats, expected "
              + count
              + " floats");
    }
    return values;
  }
}
