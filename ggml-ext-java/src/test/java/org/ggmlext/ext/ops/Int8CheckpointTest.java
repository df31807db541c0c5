package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class Int8CheckpointTest {
  private static final int K = 64;
  private static final int N = 8;
  private static final int M = 3;
  private static final String ROTATED =
      "{\"format\": \"int8_tensorwise\", \"convrot\": true, \"convrot_groupsize\": 16}";

  @TempDir private Path folder;

  private final OpsBench bench = new OpsBench();
  private final byte[] weight = bench.bytes(K, N).getBytes();
  private final float[] scale = bench.floats(N).getFloats();
  private final float[] bias = bench.floats(N).getFloats();

  @AfterEach
  void close() {
    bench.close();
  }

  private Path path() {
    return folder.resolve("model.safetensors");
  }

  private SafetensorsWriter file(String text) {
    return new SafetensorsWriter()
        .add("m.weight", Type.I8, Shape.of(K, N), MemorySegment.ofArray(weight))
        .add("m.comfy_quant", text.getBytes(StandardCharsets.UTF_8));
  }

  private static MemorySegment floats(float... values) {
    return MemorySegment.ofArray(values);
  }

  private static MemorySegment zeros(Type type, Shape shape) {
    return MemorySegment.ofArray(new byte[(int) (type.byteSize() * shape.elements())]);
  }

  /** The layer's output for x, computed by ggml from the file. */
  private Tensor apply(Tensor x) {
    try (Safetensors file = Safetensors.open(path())) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      assertThat(checkpoint.layers()).containsExactly("m");
      Int8Layer layer = checkpoint.newLayer(bench.inputs, "m");
      bench.inputs.allocate(bench.cpu).asWeights();
      checkpoint.load("m", layer);
      return bench.compute(layer.apply(bench.nodes, x));
    }
  }

  /** The layer on rows in double precision; what quantising its input costs is within a bound. */
  private void check(Tensor x, Tensor y, int group, float[] scales, float[] shift) {
    assertThat(y.shape()).isEqualTo(new Shape(N, x.ne(1), x.ne(2), x.ne(3)));
    float[] in = x.getFloats();
    float[] out = y.getFloats();
    for (int m = 0; m < x.shape().rows(); m++) {
      double[] row = new double[K];
      for (int k = 0; k < K; k++) {
        row[k] = in[m * K + k];
      }
      double[] rotated = Rotation.rotate(row, group);
      double largest = 0;
      for (double value : rotated) {
        largest = Math.max(largest, Math.abs(value));
      }
      for (int n = 0; n < N; n++) {
        double sum = 0;
        double weights = 0;
        for (int k = 0; k < K; k++) {
          sum += weight[n * K + k] * rotated[k];
          weights += Math.abs(weight[n * K + k]);
        }
        double s = scales[scales.length == 1 ? 0 : n];
        assertThat((double) out[m * N + n])
            .isCloseTo(
                sum * s + shift[n], within(weights * Math.abs(s) * largest / 127 * 0.51 + 1e-5));
      }
    }
  }

  @ParameterizedTest(name = "scale [{0}, {1}]")
  @CsvSource({"8, 1", "1, 8", "1, 1"})
  @DisplayName("JAVA-2, I8-1, I8-2: a rotated layer with scales [N], [N, 1] or [1] computes")
  void rotated(int ne0, int ne1) {
    float[] scales = ne0 * ne1 == 1 ? new float[] {0.01f} : scale;
    file(ROTATED)
        .add("m.weight_scale", Type.F32, Shape.of(ne0, ne1), floats(scales))
        .add("m.bias", Type.F32, Shape.of(N), floats(bias))
        .write(path());
    Tensor x = bench.floats(K, M, 2);
    check(x, apply(x), 16, scales, bias);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"format\":\"int8_tensorwise\"}",
        "{\"format\":\"int8_tensorwise\",\"convrot\":false,\"convrot_groupsize\":7}",
        "{\"format\":\"int8_tensorwise\",\"convrot_groupsize\":99999999999}",
        "{\"later\":{\"a\":[1]},\"format\":\"int8_tensorwise\"}",
      })
  @DisplayName("JAVA-2: a layer that was not rotated, without bias; unknown keys are passed over")
  void plain(String text) {
    file(text).add("m.weight_scale", Type.F32, Shape.of(N), floats(scale)).write(path());
    Tensor x = bench.floats(K, M);
    check(x, apply(x), 1, scale, new float[N]);
  }

  @ParameterizedTest
  @CsvSource({"F16, 0x3c00, 0xc100", "BF16, 0x3f80, 0xc020"})
  @DisplayName("JAVA-2: biases in 16 bits become F32")
  void shortBias(Type type, String one, String minusTwoAndAHalf) {
    short[] bits = new short[N];
    float[] expected = new float[N];
    for (int n = 0; n < N; n++) {
      bits[n] = (short) (int) Integer.decode(n % 2 == 0 ? one : minusTwoAndAHalf);
      expected[n] = n % 2 == 0 ? 1 : -2.5f;
    }
    file(ROTATED)
        .add("m.weight_scale", Type.F32, Shape.of(N), floats(scale))
        .add("m.bias", type, Shape.of(N), MemorySegment.ofArray(bits))
        .write(path());
    Tensor x = bench.floats(K, M);
    check(x, apply(x), 16, scale, expected);
  }

  @Test
  @DisplayName("JAVA-2: layers of other formats are passed over, and asking for one says so")
  void others() {
    file("{\"format\":\"float8_e4m3fn\",\"convrot_groupsize\":7}").write(path());
    try (Safetensors file = Safetensors.open(path())) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      assertThat(checkpoint.layers()).isEmpty();
      assertThatThrownBy(() -> checkpoint.newLayer(bench.nodes, "m"))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("no layer \"m\" of the format int8_tensorwise");
    }
  }

  private void refused(SafetensorsWriter writer, String message) {
    writer.write(path());
    try (Safetensors file = Safetensors.open(path())) {
      assertThatThrownBy(() -> Int8Checkpoint.of(file))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("model.safetensors")
          .hasMessageContaining(message);
    }
  }

  @ParameterizedTest(name = "{0} {1} [{2}, {3}]")
  @CsvSource(
      delimiter = '|',
      value = {
        "weight_scale | F32 | 7 | 1 | weight_scale\" is F32 [7] (the fastest dimension first),"
            + " expected F32 [8], [1, 8] or [1]",
        "weight_scale | F32 | 8 | 2 | expected F32 [8], [1, 8] or [1]",
        "weight_scale | F16 | 8 | 1 | is F16 [8]",
        "weight_scale | I8 | 8 | 1 | is I8 [8]",
        "bias | F32 | 9 | 1 | \"m.bias\" is F32 [9] (the fastest dimension first), expected F32",
        "bias | I32 | 8 | 1 | is I32 [8]",
      })
  @DisplayName("JAVA-2: scales and biases of a wrong length or type are refused with both")
  void refusesVectors(String name, Type type, int ne0, int ne1, String message) {
    SafetensorsWriter writer = file(ROTATED);
    if (!name.equals("weight_scale")) {
      writer.add("m.weight_scale", Type.F32, Shape.of(N), floats(scale));
    }
    Shape shape = Shape.of(ne0, ne1);
    refused(writer.add("m." + name, type, shape, zeros(type, shape)), message);
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"format\": | is no JSON",
        "[] | START_OBJECT expected, START_ARRAY found",
        "{\"format\":8} | format: VALUE_STRING expected",
        "{\"format\":\"int8_tensorwise\",\"convrot\":1} | convrot: VALUE_TRUE expected",
        "{\"format\":\"int8_tensorwise\",\"convrot_groupsize\":\"64\"} | VALUE_NUMBER_INT expected",
        "{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":99999999999} |"
            + " convrot_groupsize 99999999999, expected 1, 4, 16, 64 or 256",
        "{\"format\":\"int8_tensorwise\",\"convrot\":true,\"convrot_groupsize\":32} |"
            + " convrot_groupsize 32, expected 1, 4, 16, 64 or 256",
        "{\"format\":\"int8_tensorwise\",\"convrot\":true} | a multiple of the group 256",
        "{\"format\":\"int8_tensorwise\"} {} | nothing after its JSON object",
      })
  @DisplayName("JAVA-2: a text that is no such JSON, or a group that does not fit, is refused")
  void refusesText(String text, String message) {
    refused(file(text).add("m.weight_scale", Type.F32, Shape.of(N), floats(scale)), message);
  }

  @Test
  @DisplayName("JAVA-2: a missing tensor, or weights of another type or shape, are refused")
  void refusesWeights() {
    byte[] text = ROTATED.getBytes(StandardCharsets.UTF_8);
    refused(file(ROTATED), "the tensor \"m.weight_scale\" is missing");
    refused(
        new SafetensorsWriter().add("m.comfy_quant", text), "the tensor \"m.weight\" is missing");
    refused(
        new SafetensorsWriter().add("m.comfy_quant", text).add("m.weight", (byte) 1, (byte) 2),
        "\"m.weight\" is U8 [2] (the fastest dimension first), expected an I8 matrix");
    Shape three = Shape.of(K, N, 2);
    refused(
        new SafetensorsWriter()
            .add("m.comfy_quant", text)
            .add("m.weight", Type.I8, three, zeros(Type.I8, three)),
        "\"m.weight\" is I8 [64, 8, 2]");
    Shape long_ = Shape.of(131072, 1);
    refused(
        new SafetensorsWriter()
            .add("m.comfy_quant", text)
            .add("m.weight", Type.I8, long_, zeros(Type.I8, long_)),
        "expected 1 to 131071 features");
    refused(
        new SafetensorsWriter().add("m.comfy_quant", Type.F32, Shape.of(1), floats(1)),
        "expected the bytes of a JSON object");
    refused(new SafetensorsWriter().add("m.comfy_quant", new byte[(1 << 16) + 1]), "at most 65536");
  }

  private void twoLayers() {
    byte[] other = weight.clone();
    other[0] ^= 1;
    byte[] plain = "{\"format\":\"int8_tensorwise\"}".getBytes(StandardCharsets.UTF_8);
    file(ROTATED)
        .add("m.weight_scale", Type.F32, Shape.of(N), floats(scale))
        .add("m.bias", Type.F32, Shape.of(N), floats(bias))
        .add("one.weight", Type.I8, Shape.of(K, N), MemorySegment.ofArray(other))
        .add("one.weight_scale", Type.F32, Shape.of(1), floats(2))
        .add("one.comfy_quant", plain)
        .add("each.weight", Type.I8, Shape.of(K, N), MemorySegment.ofArray(other))
        .add("each.weight_scale", Type.F32, Shape.of(N), floats(scale))
        .add("each.bias", Type.F32, Shape.of(N), floats(bias))
        .add("each.comfy_quant", plain)
        .write(path());
  }

  @Test
  @DisplayName("JAVA-2: a layer is loaded as a whole, or refused and left as it was")
  void anotherLayer() {
    twoLayers();
    try (Safetensors file = Safetensors.open(path())) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      Int8Layer one = checkpoint.newLayer(bench.inputs, "one");
      Int8Layer each = checkpoint.newLayer(bench.inputs, "each");
      Tensor transposed =
          bench.inputs.transpose(bench.inputs.newTensor(Type.I8, N, K)); // [K, N], with gaps
      LinearI8 linear = each.linear();
      Tensor half = bench.inputs.newTensor(Type.F16, N);
      bench.inputs.allocate(bench.cpu);
      checkpoint.load("one", one);
      checkpoint.load("each", each);
      byte[] before = each.linear().weight().getBytes();

      Int8Layer[] others = {
        one, // another scale, no bias
        each, // of another group
        new Int8Layer(LinearI8.of(linear.weight()).withWeightScale(linear.weightScale()), 16),
        new Int8Layer(LinearI8.of(linear.weight()).withBias(linear.bias()), 16),
        new Int8Layer(linear.withBias(half), 16),
        new Int8Layer(
            LinearI8.of(transposed).withWeightScale(linear.weightScale()).withBias(linear.bias()),
            16),
      };
      for (Int8Layer other : others) {
        assertThatThrownBy(() -> checkpoint.load("m", other))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("\"m\" is another layer than")
            .hasMessageContaining("group 16, weight [64, 8], scale [8], bias [8]");
      }
      assertThat(each.linear().weight().getBytes()).isEqualTo(before).isNotEqualTo(weight);
      assertThat(one.linear().weight().getBytes()).isEqualTo(before);
      assertThat(one.linear().weightScale().getFloats()).containsExactly(2);

      checkpoint.load("m", new Int8Layer(linear, 16));
      assertThat(linear.weight().getBytes()).isEqualTo(weight);
      assertThat(linear.bias().getFloats()).isEqualTo(bias);
    }
  }

  @Test
  @DisplayName(
      "JAVA-2: a layer of which one tensor has no memory, or in a closed file, is untouched")
  void notReady() {
    twoLayers();
    Safetensors file = Safetensors.open(path());
    try (Context unallocated = Context.forTensors(1)) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      Int8Layer layer = checkpoint.newLayer(bench.inputs, "m");
      Tensor other = unallocated.newTensor(Type.F32, N);
      bench.inputs.allocate(bench.cpu).fill((byte) 0);
      assertThatThrownBy(
              () -> checkpoint.load("m", new Int8Layer(layer.linear().withBias(other), 16)))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("F32 [8] of the layer \"m\" has no memory");
      file.close();
      assertThatThrownBy(() -> checkpoint.load("m", layer))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining(path() + " is closed");
      assertThat(layer.linear().weight().getBytes()).containsOnly(0);
    }
  }

  @Test
  @DisplayName(
      "JAVA-2: a layer that does not fit into its context leaves none of its tensors there")
  void fullContext() {
    twoLayers();
    try (Safetensors file = Safetensors.open(path())) {
      Int8Checkpoint checkpoint = Int8Checkpoint.of(file);
      try (Context small = Context.forTensors(2)) {
        assertThatThrownBy(() -> checkpoint.newLayer(small, "m"))
            .isInstanceOf(GgmlException.class)
            .hasMessageContaining("the context is full: the tensors of \"m\" need");
        assertThat(small.tensors()).isEmpty();
        checkpoint.newLayer(small, "one");
        assertThat(small.tensors()).hasSize(2);
      }
      try (Context three = Context.forTensors(3)) {
        checkpoint.newLayer(three, "m");
        assertThat(three.tensors()).hasSize(3);
      }
    }
  }

  @Test
  @DisabledOnOs(value = OS.WINDOWS, disabledReason = "a mapped file cannot be cut short there")
  @DisplayName("JAVA-2: a file that is cut short after it was opened is named")
  void cutShort() throws IOException {
    SafetensorsWriter writer =
        new SafetensorsWriter()
            .add("a", Type.I8, Shape.of(1 << 16), zeros(Type.I8, Shape.of(1 << 16)));
    writer
        .add("m.weight", Type.I8, Shape.of(K, N), MemorySegment.ofArray(weight))
        .add("m.weight_scale", Type.F32, Shape.of(N), floats(scale))
        .add("m.comfy_quant", ROTATED.getBytes(StandardCharsets.UTF_8))
        .write(path());
    try (Safetensors file = Safetensors.open(path())) {
      try (FileChannel channel = FileChannel.open(path(), StandardOpenOption.WRITE)) {
        channel.truncate(4096);
      }
      assertThatThrownBy(() -> Int8Checkpoint.of(file))
          .isInstanceOf(GgmlException.class)
          .hasMessageContaining("cannot read " + path());
    }
  }
}
