package org.ggmlext.examples.int8;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Random;
import java.util.regex.Pattern;
import org.ggmlext.GgmlException;
import org.ggmlext.Safetensors;
import org.ggmlext.SafetensorsWriter;
import org.ggmlext.Shape;
import org.ggmlext.Type;
import org.ggmlext.ext.ops.Int8Checkpoint;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ConvertToInt8Test {
  private static final Pattern LAYERS = Pattern.compile("blocks\\..*");
  private static final int N = 5;
  private static final double[][] H4 = {
    {0.5, 0.5, 0.5, -0.5}, {0.5, 0.5, -0.5, 0.5}, {0.5, -0.5, 0.5, 0.5}, {-0.5, 0.5, 0.5, 0.5}
  };

  @TempDir private Path folder;

  private Path in() {
    return folder.resolve("in.safetensors");
  }

  private Path out() {
    return folder.resolve("out.safetensors");
  }

  private static float[] values(int count) {
    Random random = new Random(3);
    float[] values = new float[count];
    for (int i = 0; i < count; i++) {
      values[i] = (float) random.nextGaussian();
    }
    values[7] = 40; // an outlier
    return values;
  }

  private static MemorySegment segment(float... values) {
    return MemorySegment.ofArray(values);
  }

  /** An element of the rotated row, by the definition: a row of the Kronecker power times x. */
  private static double rotated(float[] rows, int features, int n, int i, int group) {
    double sum = 0;
    for (int j = 0; j < group; j++) {
      double product = 1;
      for (int block = group / 4; block >= 1; block /= 4) {
        product *= H4[i % group / block % 4][j / block % 4];
      }
      sum += product * rows[n * features + i - i % group + j];
    }
    return sum;
  }

  @ParameterizedTest(name = "{0} features, limit {1}: groups of {2}")
  @CsvSource({
    "512, 256, 256",
    "384, 256, 64",
    "384, 16, 16",
    "36, 256, 4",
    "33, 64, 1",
    "64, 1, 1"
  })
  @DisplayName("I8-2: weights are rotated in groups that divide, scaled by row and rounded")
  void quantizes(int features, int limit, int group) {
    float[] rows = values(N * features);
    new SafetensorsWriter()
        .add("blocks.0.weight", Type.F32, Shape.of(features, N), segment(rows))
        .write(in());

    assertThat(ConvertToInt8.convert(in(), out(), LAYERS, limit)).isEqualTo(1);

    try (Safetensors file = Safetensors.open(out())) {
      assertThat(Int8Checkpoint.of(file).layers()).containsExactly("blocks.0");
      String text =
          new String(
              file.data("blocks.0.comfy_quant").toArray(ValueLayout.JAVA_BYTE),
              StandardCharsets.UTF_8);
      assertThat(text)
          .contains(group == 1 ? "\"convrot\": false" : "\"convrot_groupsize\": " + group + "}");
      assertThat(file.tensor("blocks.0.comfy_quant").dtype()).isEqualTo("U8");
      assertThat(file.tensor("blocks.0.weight_scale").shape()).isEqualTo(Shape.of(1, N));
      byte[] weight = file.data("blocks.0.weight").toArray(ValueLayout.JAVA_BYTE);
      MemorySegment scales = file.data("blocks.0.weight_scale");
      for (int n = 0; n < N; n++) {
        double scale =
            scales.getAtIndex(
                ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN), n);
        double largest = 0;
        for (int k = 0; k < features; k++) {
          double expected = rotated(rows, features, n, k, group);
          largest = Math.max(largest, Math.abs(expected));
          assertThat((double) weight[n * features + k]).isCloseTo(expected / scale, within(0.5001));
        }
        assertThat(scale).isCloseTo(largest / 127, within(largest * 1e-7));
      }
    }
  }

  @Test
  @DisplayName("JAVA-2: only matching matrices are converted, the rest is copied byte for byte")
  void copiesTheRest() {
    new SafetensorsWriter()
        .add("embed.weight", Type.F32, Shape.of(8, 2), segment(values(16)))
        .add("blocks.0.weight", Type.BF16, Shape.of(4, 1), shorts(0x3f80, 0xc000, 0, 0))
        .add("blocks.1.weight", Type.F16, Shape.of(4, 2), shorts(0, 0, 0, 0, 0, 0, 0, 0xc000))
        .add("blocks.0.bias", Type.F32, Shape.of(1), segment(0.25f))
        .add("blocks.norm.weight", Type.F32, Shape.of(8), segment(values(8)))
        .add("note", (byte) 5)
        .write(in());

    // [4, 1] is no matrix: the file has it as a vector.
    assertThat(ConvertToInt8.convert(in(), out(), LAYERS, 4)).isEqualTo(1);

    try (Safetensors before = Safetensors.open(in());
        Safetensors after = Safetensors.open(out())) {
      for (String name :
          new String[] {
            "embed.weight", "blocks.0.weight", "blocks.0.bias", "blocks.norm.weight", "note"
          }) {
        assertThat(after.tensor(name).dtype()).isEqualTo(before.tensor(name).dtype());
        assertThat(after.tensor(name).shape()).isEqualTo(before.tensor(name).shape());
        assertThat(after.data(name).mismatch(before.data(name))).isEqualTo(-1);
      }
      // A row of zeros has scale 0; of [0, 0, 0, -2] the rotation is [1, -1, -1, -1].
      assertThat(after.data("blocks.1.weight").toArray(ValueLayout.JAVA_BYTE))
          .containsExactly(0, 0, 0, 0, 127, -127, -127, -127);
      assertThat(after.data("blocks.1.weight_scale").toArray(ValueLayout.JAVA_FLOAT_UNALIGNED))
          .containsExactly(0, 1 / 127f);
    }
  }

  private static MemorySegment shorts(int... bits) {
    short[] values = new short[bits.length];
    for (int i = 0; i < bits.length; i++) {
      values[i] = (short) bits[i];
    }
    return MemorySegment.ofArray(values);
  }

  private void refused(String name, float[] rows, Path out, int group, String message) {
    new SafetensorsWriter()
        .add(name, Type.F32, Shape.of(4, rows.length / 4), segment(rows))
        .write(in());
    assertThatThrownBy(() -> ConvertToInt8.convert(in(), out, LAYERS, group))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("JAVA-2: what cannot be converted is refused with what was expected")
  void refuses() {
    refused("blocks.0.weight", values(8), in(), 256, "is the input, too");
    refused("blocks.0.weight", values(8), out(), 32, "the group is 32, expected 1, 4, 16");
    refused("layers.0.weight", values(8), out(), 256, "has no F32, F16 or BF16 matrix");
    float[] bad = values(8);
    bad[6] = Float.NaN;
    refused("blocks.0.weight", bad, out(), 256, "blocks.0.weight: value 2 of row 1 is NaN");
    assertThatThrownBy(() -> ConvertToInt8.convert(folder.resolve("none"), out(), LAYERS, 256))
        .isInstanceOf(GgmlException.class)
        .hasMessageContaining("cannot read");
  }
}
