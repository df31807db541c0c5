package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class QuantizeI8ConvRotTest {
  private static final int FEATURES = 512;
  private static final int ROWS = 6;

  private final OpsBench bench = new OpsBench();

  @AfterEach
  void close() {
    bench.close();
  }

  @ParameterizedTest(name = "groups of {0}")
  @ValueSource(ints = {1, 4, 16, 64, 256})
  @DisplayName("I8-2: rows are rotated by the dense matrix, scaled and rounded; padded with zeros")
  void quantizes(int group) {
    Tensor x = bench.floats(FEATURES, ROWS);

    Tensor packed = bench.compute(QuantizeI8ConvRot.create(bench.nodes, x, group));

    assertThat(packed.type()).isEqualTo(Type.I8);
    assertThat(packed.elements()).isEqualTo(8L * FEATURES + 4L * ROWS);
    assertThat(QuantizeI8ConvRot.packedSize(ROWS, FEATURES)).isEqualTo(packed.elements());
    assertThat(QuantizeI8ConvRot.scalesOffset(ROWS, FEATURES)).isEqualTo(8L * FEATURES);
    byte[] bytes = packed.getBytes();
    ByteBuffer scales =
        ByteBuffer.wrap(bytes, 8 * FEATURES, 4 * ROWS).order(ByteOrder.LITTLE_ENDIAN);
    float[] in = x.getFloats();
    for (int row = 0; row < ROWS; row++) {
      double[] values = new double[FEATURES];
      for (int i = 0; i < FEATURES; i++) {
        values[i] = in[row * FEATURES + i];
      }
      double[] rotated = Rotation.rotate(values, group);
      double scale = 0;
      for (double value : rotated) {
        scale = Math.max(scale, Math.abs(value) / 127);
      }
      assertThat((double) scales.getFloat()).isCloseTo(scale, within(scale * 1e-5));
      for (int i = 0; i < FEATURES; i++) {
        // Half a step, and what float sums of 256 terms of size 3 may be off by.
        assertThat((double) bytes[row * FEATURES + i])
            .isCloseTo(rotated[i] / scale, within(0.5 + 0.01));
      }
    }
    for (int i = ROWS * FEATURES; i < 8 * FEATURES; i++) {
      assertThat(bytes[i]).isZero();
    }
  }

  @ParameterizedTest(name = "{0} {1} features, groups of {2}")
  @CsvSource(
      delimiter = '|',
      value = {
        "F32 | 384 | 256 | X has 384 features, expected a multiple of the group 256",
        "F32 | 384 | 32 | the group is 32, expected 1, 4, 16, 64 or 256",
        "F32 | 384 | 0 | the group is 0, expected 1, 4, 16, 64 or 256",
        "F16 | 384 | 64 | X has type F16, expected F32",
        "I8 | 384 | 64 | X has type I8, expected F32",
      })
  @DisplayName("I8-2: what does not fit is refused when the node is made, and says why")
  void refuses(Type type, int features, int group, String message) {
    Tensor x = bench.any(type, features, 4);
    assertThatThrownBy(() -> QuantizeI8ConvRot.create(bench.nodes, x, group))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("I8-2: a column of a transposed matrix is no row")
  void refusesTransposed() {
    Tensor x = bench.nodes.transpose(bench.any(Type.F32, 64, 64));
    assertThatThrownBy(() -> QuantizeI8ConvRot.create(bench.nodes, x, 64))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the elements in a row of X are 256 bytes apart");
  }

  @Test
  @DisplayName("I8-2: sizes of packed rows; negative numbers are refused, what is null is named")
  void sizes() {
    assertThat(QuantizeI8ConvRot.packedSize(5, 64)).isEqualTo(8 * 64 + 5 * 4);
    assertThat(QuantizeI8ConvRot.scalesOffset(5, 64)).isEqualTo(8 * 64);
    assertThat(QuantizeI8ConvRot.packedSize(0, 64)).isZero();
    for (long[] size : new long[][] {{-5, 64}, {5, -1}}) {
      assertThatThrownBy(() -> QuantizeI8ConvRot.packedSize(size[0], size[1]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("%d rows of %d features".formatted(size[0], size[1]));
      assertThatThrownBy(() -> QuantizeI8ConvRot.scalesOffset(size[0], size[1]))
          .isInstanceOf(IllegalArgumentException.class);
    }
    assertThatThrownBy(() -> QuantizeI8ConvRot.packedSize(1L << 40, 1L << 30))
        .isInstanceOf(ArithmeticException.class);
    assertThatThrownBy(() -> QuantizeI8ConvRot.create(bench.nodes, null, 64))
        .isInstanceOf(NullPointerException.class)
        .hasMessage("x");
  }
}
