package org.ggmlext.examples.minilm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import com.google.protobuf.ByteString;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.ggmlext.examples.minilm.MiniLmWeights.Dense;
import org.ggmlext.examples.onnx.GraphProto;
import org.ggmlext.examples.onnx.ModelProto;
import org.ggmlext.examples.onnx.NodeProto;
import org.ggmlext.examples.onnx.TensorProto;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class OnnxWeightsTest {

  private static final int FLOAT = 1;
  private static final int INT64 = 7;

  @Test
  @DisplayName(
      "A dense layer's unnamed matrix is found through the graph and turned to ggml's order")
  void findsDenseMatrixByItsBias() throws Exception {
    OnnxWeights weights = read(denseLayer());

    Weight matrix = weights.denseMatrix("layer.bias", 2, 3);

    assertThat(matrix.name()).isEqualTo("onnx::MatMul_9");
    assertThat(matrix.ne0()).isEqualTo(2);
    assertThat(matrix.ne1()).isEqualTo(3);
    assertThat(matrix.data()).containsExactly(1, 4, 2, 5, 3, 6);
  }

  @Test
  @DisplayName("Layers of one input become one: the outputs of the first, then those of the second")
  void stacksLayers() throws Exception {
    OnnxWeights weights =
        read(
            denseLayer()
                .addInitializer(raw("first.bias", FLOAT, bytes(-1f, -2f, -3f), 3))
                .addInitializer(
                    raw("onnx::MatMul_8", FLOAT, bytes(11f, 12f, 13f, 14f, 15f, 16f), 2, 3))
                .addNode(node("MatMul", "other product", "x", "onnx::MatMul_8"))
                .addNode(node("Add", "z", "other product", "first.bias")));

    Dense<Weight> both = weights.stacked("both", List.of("first", "layer"), 2, 3);

    assertThat(both.matrix().name()).isEqualTo("both.weight");
    assertThat(both.matrix().ne0()).isEqualTo(2);
    assertThat(both.matrix().ne1()).isEqualTo(6);
    assertThat(both.matrix().data()).containsExactly(11, 14, 12, 15, 13, 16, 1, 4, 2, 5, 3, 6);
    assertThat(both.bias().name()).isEqualTo("both.bias");
    assertThat(both.bias().ne0()).isEqualTo(6);
    assertThat(both.bias().data()).containsExactly(-1, -2, -3, 1, 2, 3);
  }

  @Test
  @DisplayName("Values are read from raw bytes and from the float list")
  void readsBothKindsOfStorage() throws Exception {
    OnnxWeights weights =
        read(
            GraphProto.newBuilder()
                .addInitializer(raw("raw", FLOAT, bytes(1.5f, -2f), 2))
                .addInitializer(
                    TensorProto.newBuilder()
                        .setName("list")
                        .setDataType(FLOAT)
                        .addDims(2)
                        .addFloatData(1.5f)
                        .addFloatData(-2f)));

    assertThat(weights.vector("raw", 2).data()).containsExactly(1.5f, -2f);
    assertThat(weights.vector("list", 2).data()).containsExactly(1.5f, -2f);
  }

  @Test
  @DisplayName("A missing tensor, another shape, type or size is refused by name")
  void refusesWrongTensors() throws Exception {
    OnnxWeights weights =
        read(
            denseLayer()
                .addInitializer(raw("ids", INT64, ByteString.copyFrom(new byte[16]), 2))
                .addInitializer(raw("short", FLOAT, bytes(1f), 2))
                .addInitializer(raw("free.bias", FLOAT, bytes(1f, 2f, 3f), 3))
                .addInitializer(
                    raw("elsewhere", FLOAT, ByteString.EMPTY, 2).toBuilder().setDataLocation(1)));

    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.vector("norm.weight", 2))
        .withMessageContaining("m.onnx has no initializer norm.weight; it has [")
        .withMessageContaining("layer.bias");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.vector("layer.bias", 4))
        .withMessage("m.onnx: initializer layer.bias has the shape [3], expected [4]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.matrix("layer.bias", 3, 1))
        .withMessage("m.onnx: initializer layer.bias has the shape [3], expected [3, 1]");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.vector("ids", 2))
        .withMessage("m.onnx: initializer ids has the ONNX data type 7, expected 1 (FLOAT)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.vector("short", 2))
        .withMessage("m.onnx: initializer short holds 4 bytes and 0 floats, expected 2 floats");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.vector("elsewhere", 2))
        .withMessageContaining("lies in another file");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> weights.denseMatrix("free.bias", 2, 3))
        .withMessage("m.onnx: no MatMul with a stored matrix feeds the Add of free.bias");
  }

  @Test
  @DisplayName("Bytes that are no ONNX model are refused")
  void refusesOtherFiles() {
    assertThatIOException()
        .isThrownBy(() -> read("not a model".getBytes(StandardCharsets.UTF_8)))
        .withMessageContaining("m.onnx is no ONNX model");
    assertThatIOException()
        .isThrownBy(() -> read(new byte[0]))
        .withMessageContaining("holds no initializers");
  }

  private static GraphProto.Builder denseLayer() {
    return GraphProto.newBuilder()
        .addInitializer(raw("layer.bias", FLOAT, bytes(1f, 2f, 3f), 3))
        .addInitializer(raw("onnx::MatMul_9", FLOAT, bytes(1f, 2f, 3f, 4f, 5f, 6f), 2, 3))
        .addNode(node("MatMul", "product", "x", "onnx::MatMul_9"))
        .addNode(node("Add", "y", "layer.bias", "product"));
  }

  private static NodeProto node(String op, String output, String... inputs) {
    return NodeProto.newBuilder()
        .setOpType(op)
        .addOutput(output)
        .addAllInput(List.of(inputs))
        .build();
  }

  private static TensorProto raw(String name, int type, ByteString bytes, long... dims) {
    TensorProto.Builder tensor =
        TensorProto.newBuilder().setName(name).setDataType(type).setRawData(bytes);
    for (long dim : dims) {
      tensor.addDims(dim);
    }
    return tensor.build();
  }

  private static ByteString bytes(float... values) {
    ByteBuffer buffer = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    buffer.asFloatBuffer().put(values);
    return ByteString.copyFrom(buffer);
  }

  private static OnnxWeights read(GraphProto.Builder graph) throws IOException {
    return read(ModelProto.newBuilder().setIrVersion(6).setGraph(graph).build().toByteArray());
  }

  private static OnnxWeights read(byte[] model) throws IOException {
    return OnnxWeights.read(new ByteArrayInputStream(model), "m.onnx");
  }
}
