package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.function.BiFunction;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class NormOpsTest {
  private static final int ROW = 9;
  private static final Shape SHAPE = Shape.of(ROW, 4, 2);
  private static final float EPS = 1e-3f;

  @FunctionalInterface
  interface Unary extends BiFunction<Context, Tensor, Tensor> {}

  /** Gives the normalised row of a row. */
  @FunctionalInterface
  interface RowReference {
    double[] apply(double[] row);
  }

  static Stream<Arguments> rows() {
    return Stream.of(
        of("norm", (c, a) -> c.norm(a, EPS), NormOpsTest::norm),
        of("normInplace", (c, a) -> c.normInplace(a, EPS), NormOpsTest::norm),
        of("rmsNorm", (c, a) -> c.rmsNorm(a, EPS), NormOpsTest::rms),
        of("rmsNormInplace", (c, a) -> c.rmsNormInplace(a, EPS), NormOpsTest::rms),
        of("l2Norm", (c, a) -> c.l2Norm(a, EPS), NormOpsTest::l2),
        of("softMax", Context::softMax, NormOpsTest::softMax),
        of("softMaxInplace", Context::softMaxInplace, NormOpsTest::softMax));
  }

  private static Arguments of(String name, Unary operation, RowReference reference) {
    return Arguments.of(name, operation, reference);
  }

  @ParameterizedTest(name = "JAVA-2: {0} equals its reference, row by row")
  @MethodSource("rows")
  void equalsReference(String name, Unary operation, RowReference reference) {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      Tensor a = run.input(SHAPE, x);
      float[] result = run.floats(c -> operation.apply(c, a));
      Close.assertNear(result, i -> reference.apply(row(x, i / ROW, 1))[i % ROW], 1e-5);
    }
  }

  @Test
  @DisplayName("JAVA-2: groupNorm normalises all elements of a group of matrices")
  void groupNorm() {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      Tensor a = run.input(SHAPE, x);
      double[] all = new double[x.length];
      for (int i = 0; i < x.length; i++) {
        all[i] = x[i];
      }
      double[] reference = norm(all);
      Close.assertNear(run.floats(c -> c.groupNorm(a, 1, EPS)), i -> reference[i], 1e-5);
    }
  }

  @Test
  @DisplayName("JAVA-2: softMaxExt scales, then adds the mask")
  void softMaxExt() {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      float[] m = run.values(Shape.of(ROW, 4));
      Tensor a = run.input(SHAPE, x);
      Tensor mask = run.input(Shape.of(ROW, 4), m);
      Close.assertNear(
          run.floats(c -> c.softMaxExt(a, mask, 0.5f, 0)),
          i -> softMax(masked(x, m, i / ROW))[i % ROW],
          1e-5);
      Close.assertNear(
          run.floats(c -> c.softMaxExtInplace(a, null, 0.5f, 0)),
          i -> softMax(row(x, i / ROW, 0.5))[i % ROW],
          1e-5);
    }
  }

  private static double[] masked(float[] x, float[] mask, int row) {
    double[] values = row(x, row, 0.5);
    for (int i = 0; i < ROW; i++) {
      values[i] += mask[row % 4 * ROW + i];
    }
    return values;
  }

  @Test
  @DisplayName("JAVA-2: diagMaskInf hides what comes after the row's position")
  void diagMaskInf() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(3, 2), 1, 2, 3, 4, 5, 6);
      float hidden = Float.NEGATIVE_INFINITY;
      assertThat(run.floats(c -> c.diagMaskInf(a, 0)))
          .containsExactly(1, hidden, hidden, 4, 5, hidden);
      assertThat(run.floats(c -> c.diagMaskInfInplace(c.dup(a), 1)))
          .containsExactly(1, 2, hidden, 4, 5, 6);
    }
  }

  private static double[] row(float[] x, int row, double scale) {
    double[] values = new double[ROW];
    for (int i = 0; i < ROW; i++) {
      values[i] = scale * x[row * ROW + i];
    }
    return values;
  }

  private static double[] norm(double[] x) {
    double mean = 0;
    for (double v : x) {
      mean += v / x.length;
    }
    double variance = 0;
    for (double v : x) {
      variance += (v - mean) * (v - mean) / x.length;
    }
    double[] result = new double[x.length];
    for (int i = 0; i < x.length; i++) {
      result[i] = (x[i] - mean) / Math.sqrt(variance + EPS);
    }
    return result;
  }

  private static double[] rms(double[] x) {
    return divided(x, Math.sqrt(squares(x) / x.length + EPS));
  }

  private static double[] l2(double[] x) {
    return divided(x, Math.max(Math.sqrt(squares(x)), EPS));
  }

  private static double squares(double[] x) {
    double sum = 0;
    for (double v : x) {
      sum += v * v;
    }
    return sum;
  }

  private static double[] softMax(double[] x) {
    double[] result = new double[x.length];
    double sum = 0;
    for (int i = 0; i < x.length; i++) {
      result[i] = Math.exp(x[i]);
      sum += result[i];
    }
    return divided(result, sum);
  }

  private static double[] divided(double[] x, double by) {
    double[] result = new double[x.length];
    for (int i = 0; i < x.length; i++) {
      result[i] = x[i] / by;
    }
    return result;
  }
}
