package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.util.Arrays;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.ggmlext.Ggml;
import org.ggmlext.Shape;
import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.Extensions;
import org.ggmlext.ext.NoAttributes;
import org.ggmlext.ext.Operator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class LinearI8Test {
  private static final int K = 64;
  private static final int N = 7;
  private static final int M = 5;

  private final OpsBench bench = new OpsBench();

  @AfterEach
  void close() {
    bench.close();
  }

  /** The sum of I8-1 in double precision, with scales that are given. */
  private static double dot(byte[] w, int n, double[] x) {
    double sum = 0;
    for (int k = 0; k < K; k++) {
      sum += w[n * K + k] * x[k];
    }
    return sum;
  }

  private static double[] row(byte[] x, int m) {
    double[] row = new double[K];
    for (int k = 0; k < K; k++) {
      row[k] = x[m * K + k];
    }
    return row;
  }

  private static double[] row(float[] x, int m) {
    double[] row = new double[K];
    for (int k = 0; k < K; k++) {
      row[k] = x[m * K + k];
    }
    return row;
  }

  @ParameterizedTest(name = "groups of {0}")
  @CsvSource({"1", "16"})
  @DisplayName("I8-1, I8-2: rows of zeros give the bias, rows with an Inf or NaN give NaNs")
  void zerosInfsNans(int group) {
    float[] rows = new float[5 * K];
    rows[K + 3] = Float.NaN;
    rows[2 * K + 5] = Float.POSITIVE_INFINITY;
    rows[3 * K + 7] = Float.NEGATIVE_INFINITY;
    Arrays.fill(rows, 4 * K, 5 * K, 1);
    byte[] ones = new byte[K * N];
    Arrays.fill(ones, (byte) 1);
    Tensor x = bench.floats(rows, K, 5);
    LinearI8 linear =
        LinearI8.of(bench.bytes(K, N).setBytes(ones))
            .withWeightScale(bench.floats(N))
            .withBias(bench.floats(N));

    Tensor y = bench.compute(new Int8Layer(linear, group).apply(bench.nodes, x));

    float[] out = y.getFloats();
    for (int n = 0; n < N; n++) {
      float bias = linear.bias().getFloats()[n];
      assertThat(out[n]).isEqualTo(bias);
      assertThat(out[N + n]).isNaN();
      assertThat(out[2 * N + n]).isNaN();
      assertThat(out[3 * N + n]).isNaN();
      assertThat(out[4 * N + n]).isFinite();
    }
  }

  @ParameterizedTest(name = "W_scale [{0}, {1}], X_scale [{2}]")
  @CsvSource({"7, 1, 5", "1, 7, 5", "1, 1, 5", "7, 1, 1"})
  @DisplayName("I8-1: mulMatI8 scales and shifts the exact sum of INT8 rows")
  void multipliesBytes(int wRow, int wRows, int xScales) {
    Tensor w = bench.bytes(K, N);
    Tensor x = bench.bytes(K, M);
    Tensor wScale = bench.floats(wRow, wRows);
    Tensor xScale = bench.floats(xScales);
    Tensor bias = bench.floats(N);

    Tensor y =
        bench.compute(
            LinearI8.of(w).withWeightScale(wScale).withBias(bias).mulMatI8(bench.nodes, x, xScale));

    assertThat(y.shape()).isEqualTo(Shape.of(N, M));
    float[] out = y.getFloats();
    for (int m = 0; m < M; m++) {
      for (int n = 0; n < N; n++) {
        double product =
            dot(w.getBytes(), n, row(x.getBytes(), m))
                * xScale.getFloats()[xScales == 1 ? 0 : m]
                * wScale.getFloats()[wRow * wRows == 1 ? 0 : n];
        double expected = product + bias.getFloats()[n];
        assertThat((double) out[m * N + n])
            .isCloseTo(expected, within((Math.abs(product) + Math.abs(expected)) * 1e-6));
      }
    }
  }

  @Test
  @DisplayName("I8-1: without scales and bias the sum itself comes out")
  void multipliesAlone() {
    Tensor w = bench.bytes(K, N);
    Tensor x = bench.bytes(K, M, 2);

    Tensor y = bench.compute(LinearI8.of(w).create(bench.nodes, x));

    assertThat(y.shape()).isEqualTo(Shape.of(N, M, 2));
    for (int m = 0; m < 2 * M; m++) {
      for (int n = 0; n < N; n++) {
        assertThat((double) y.getFloats()[m * N + n])
            .isEqualTo(dot(w.getBytes(), n, row(x.getBytes(), m)));
      }
    }
  }

  @ParameterizedTest(name = "groups of {0}")
  @CsvSource({"1", "4", "16", "64"})
  @DisplayName(
      "I8-1, I8-2: F32 rows, plain or packed, give the product up to half a step a feature")
  void quantizesRows(int group) {
    Tensor w = bench.bytes(K, N);
    Tensor wScale = bench.floats(N);
    Tensor x = bench.floats(K, M);
    LinearI8 layer = LinearI8.of(w).withWeightScale(wScale);

    Tensor y =
        bench.compute(
            group == 1
                ? layer.create(bench.nodes, x)
                : layer.createPacked(
                    bench.nodes, QuantizeI8ConvRot.create(bench.nodes, x, group), M));

    float[] out = y.getFloats();
    for (int m = 0; m < M; m++) {
      double[] rotated = Rotation.rotate(row(x.getFloats(), m), group);
      double largest = 0;
      for (double value : rotated) {
        largest = Math.max(largest, Math.abs(value));
      }
      for (int n = 0; n < N; n++) {
        double weights = 0;
        for (int k = 0; k < K; k++) {
          weights += Math.abs(w.getBytes()[n * K + k]);
        }
        double scale = wScale.getFloats()[n];
        assertThat((double) out[m * N + n])
            .isCloseTo(
                dot(w.getBytes(), n, rotated) * scale,
                within(weights * Math.abs(scale) * largest / 127 * 0.51));
      }
    }
  }

  private static void refused(ThrowingCallable node, String message) {
    assertThatThrownBy(node)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  @Test
  @DisplayName("I8-1: types and shapes that do not fit are refused when the node is made")
  void refusesShapes() {
    LinearI8 layer = LinearI8.of(bench.any(Type.I8, K, N));
    Tensor x = bench.any(Type.I8, K, M);
    refused(
        () -> LinearI8.of(bench.any(Type.F32, K, N)).create(bench.nodes, x),
        "W has type F32 and shape [64, 7, 1, 1], expected an I8 matrix");
    refused(
        () -> layer.create(bench.nodes, bench.any(Type.I8, K + 1, M)),
        "X has 65 features, expected 64 as W has");
    refused(
        () -> layer.create(bench.nodes, bench.any(Type.F16, K, M)),
        "X has type F16, expected I8 or F32");
    refused(
        () -> layer.createPacked(bench.nodes, bench.any(Type.I8, 100), M),
        "the packed X is [100, 1], expected contiguous [532] for 5 rows of 64 features");
    refused(
        () -> layer.mulMatI8(bench.nodes, bench.any(Type.F32, K, M), bench.any(Type.F32, M)),
        "X_scale is there, but X is F32");
  }

  @Test
  @DisplayName("I8-1: scales and biases of a wrong length or type are refused with both lengths")
  void refusesScales() {
    LinearI8 layer = LinearI8.of(bench.any(Type.I8, K, N));
    Tensor x = bench.any(Type.I8, K, M);
    refused(
        () -> layer.withWeightScale(bench.any(Type.F32, N + 1)).create(bench.nodes, x),
        "W_scale is [8, 1, 1, 1], expected contiguous [7] or [1]");
    refused(
        () -> layer.withWeightScale(bench.any(Type.F16, N)).create(bench.nodes, x),
        "W_scale has type F16, expected F32");
    refused(
        () -> layer.withBias(bench.any(Type.F32, 1)).create(bench.nodes, x),
        "bias is [1, 1, 1, 1], expected contiguous [7]");
    refused(
        () -> layer.mulMatI8(bench.nodes, x, bench.any(Type.F32, N)),
        "X_scale is [7, 1, 1, 1], expected contiguous [5] or [1]");
  }

  @ParameterizedTest
  @CsvSource({"0", "-1", "2147483648"})
  @DisplayName("I8-1: a number of packed rows that is no positive int is refused")
  void refusesRows(long rows) {
    LinearI8 layer = LinearI8.of(bench.any(Type.I8, K, N));
    assertThatThrownBy(() -> layer.createPacked(bench.nodes, bench.any(Type.I8, 532), rows))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("rows is " + rows + ", expected 1 to 2147483647");
  }

  @Test
  @DisplayName("OP-1: an operator of a library is not registered itself")
  void refusesRegistration() {
    Operator<NoAttributes> operator =
        Operator.ofLibrary(
            "sd.linear_i8.v1", NoAttributes.class, java.lang.invoke.MethodHandles.lookup());
    assertThatThrownBy(() -> Extensions.attach(Ggml.load()).register(operator))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("sd.linear_i8.v1 comes from a kernel library");
  }

  @Test
  @DisplayName("I8-2: rows that were rotated in other groups than a layer's weights are refused")
  void refusesOtherGroups() {
    Int8Layer layer = new Int8Layer(LinearI8.of(bench.bytes(64, N)), 16);
    Tensor x = bench.floats(64, M);
    Tensor other = QuantizeI8ConvRot.create(bench.nodes, x, 64);
    assertThatThrownBy(() -> layer.apply(bench.nodes, other, x))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(
            "the rows are packed with group 64, the layer's weights were rotated with group 16");
    Tensor same = QuantizeI8ConvRot.create(bench.nodes, x, 16);
    assertThat(bench.compute(layer.apply(bench.nodes, same, x)).getFloats())
        .isEqualTo(bench.compute(layer.apply(bench.nodes, x)).getFloats());
    Tensor written = bench.any(Type.I8, QuantizeI8ConvRot.packedSize(M, 64));
    assertThat(layer.apply(bench.nodes, written, x).ne(0)).isEqualTo(N);
    for (int group : new int[] {0, 2, 32, -4, 1024}) {
      assertThatThrownBy(() -> new Int8Layer(layer.linear(), group))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("the group is " + group + ", expected 1, 4, 16, 64 or 256");
    }
  }

  @Test
  @DisplayName("I8-1: what is null is named")
  void namesNull() {
    LinearI8 linear = LinearI8.of(bench.any(Type.I8, 64, 8));
    Tensor x = bench.any(Type.I8, 64, 3);
    assertThatNullPointerException().isThrownBy(() -> LinearI8.of(null)).withMessage("weight");
    assertThatNullPointerException()
        .isThrownBy(() -> linear.create(bench.nodes, null))
        .withMessage("x");
    assertThatNullPointerException()
        .isThrownBy(() -> linear.mulMatI8(bench.nodes, x, null))
        .withMessage("xScale");
    assertThatNullPointerException()
        .isThrownBy(() -> linear.createPacked(bench.nodes, null, 3))
        .withMessage("packed");
    assertThatNullPointerException().isThrownBy(() -> new Int8Layer(null, 1)).withMessage("linear");
  }
}
