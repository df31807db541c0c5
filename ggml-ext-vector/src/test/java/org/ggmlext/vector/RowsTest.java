package org.ggmlext.vector;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.function.IntToDoubleFunction;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Against the same formulas in double precision; lengths around every multiple of a vector. */
class RowsTest {
  private static final long OFFSET = 12;
  private static final float GUARD = 123.25f;

  private final Arena arena = Arena.ofConfined();
  private final Random random = new Random(7);

  @AfterEach
  void close() {
    arena.close();
  }

  private MemorySegment row(int n, float range) {
    MemorySegment row = arena.allocate(OFFSET + 4L * n + 4, 4);
    for (int i = 0; i < n; i++) {
      set(row, i, (random.nextFloat() * 2 - 1) * range);
    }
    set(row, n, GUARD);
    return row;
  }

  private static float get(MemorySegment row, int i) {
    return row.get(ValueLayout.JAVA_FLOAT, OFFSET + 4L * i);
  }

  private static void set(MemorySegment row, int i, float value) {
    row.set(ValueLayout.JAVA_FLOAT, OFFSET + 4L * i, value);
  }

  private static void check(
      MemorySegment out, int n, double tolerance, IntToDoubleFunction expected) {
    for (int i = 0; i < n; i++) {
      double want = expected.applyAsDouble(i);
      double error = Math.abs(get(out, i) - want) / (1 + Math.abs(want));
      assertThat(error).as("element %d of %d, expected %s", i, n, want).isLessThan(tolerance);
    }
    assertThat(get(out, n)).as("the element behind the row").isEqualTo(GUARD);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 3, 4, 7, 8, 15, 16, 17, 31, 64, 65, 1000})
  @DisplayName("JAVA-6: add, mul, scale and addScaled equal double precision, tails included")
  void arithmetic(int n) {
    MemorySegment a = row(n, 3);
    MemorySegment b = row(n, 3);
    MemorySegment out = row(n, 0);
    Rows.add(a, OFFSET, b, OFFSET, out, OFFSET, n);
    check(out, n, 1e-6, i -> (double) get(a, i) + get(b, i));
    Rows.mul(a, OFFSET, b, OFFSET, out, OFFSET, n);
    check(out, n, 1e-6, i -> (double) get(a, i) * get(b, i));
    Rows.scale(a, OFFSET, out, OFFSET, n, 1.5f, -2);
    check(out, n, 1e-6, i -> get(a, i) * 1.5 - 2);
    Rows.addScaled(b, OFFSET, out, OFFSET, n, 0.25f);
    check(out, n, 1e-6, i -> get(a, i) * 1.5 - 2 + get(b, i) * 0.25);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 5, 8, 16, 33, 384})
  @DisplayName("JAVA-6: silu and gelu equal double precision, far from zero too")
  void activations(int n) {
    MemorySegment x = row(n, 30);
    MemorySegment out = row(n, 0);
    Activations.silu(x, OFFSET, out, OFFSET, n);
    check(out, n, 2e-6, i -> get(x, i) / (1 + Math.exp(-get(x, i))));
    Activations.gelu(x, OFFSET, out, OFFSET, n);
    check(out, n, 2e-6, i -> gelu(get(x, i)));
  }

  private static double gelu(double x) {
    return x / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 5, 8, 16, 33, 64, 67, 1000})
  @DisplayName("JAVA-6: dot, sum, sum of squares and maximum equal double precision")
  void reductions(int n) {
    MemorySegment a = row(n, 1);
    MemorySegment b = row(n, 1);
    double dot = 0;
    double sum = 0;
    double squares = 0;
    double centered = 0;
    double max = Double.NEGATIVE_INFINITY;
    for (int i = 0; i < n; i++) {
      dot += (double) get(a, i) * get(b, i);
      sum += get(a, i);
      squares += Math.pow(get(a, i), 2);
      centered += Math.pow(get(a, i) - 0.5, 2);
      max = Math.max(max, get(a, i));
    }
    assertThat((double) Reductions.dot(a, OFFSET, b, OFFSET, n)).isCloseTo(dot, within(n));
    assertThat((double) Reductions.sum(a, OFFSET, n)).isCloseTo(sum, within(n));
    assertThat((double) Reductions.sumSquares(a, OFFSET, n)).isCloseTo(squares, within(n));
    assertThat((double) Reductions.sumSquares(a, OFFSET, n, 0.5f)).isCloseTo(centered, within(n));
    assertThat((double) Reductions.max(a, OFFSET, n)).isEqualTo(max);
  }

  private static org.assertj.core.data.Offset<Double> within(int n) {
    return org.assertj.core.data.Offset.offset(1e-6 * (n + 1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 5, 16, 33, 384})
  @DisplayName("JAVA-6: layer norm, RMS norm and softmax equal double precision, in place too")
  void norms(int n) {
    MemorySegment x = row(n, 2);
    MemorySegment out = row(n, 0);
    double mean = 0;
    double square = 0;
    double exps = 0;
    for (int i = 0; i < n; i++) {
      mean += get(x, i) / (double) n;
      square += Math.pow(get(x, i), 2) / n;
      exps += Math.exp(get(x, i) * 0.5);
    }
    double variance = 0;
    for (int i = 0; i < n; i++) {
      variance += Math.pow(get(x, i) - mean, 2) / n;
    }
    double center = mean;
    double deviation = Math.sqrt(variance + 1e-5);
    double root = Math.sqrt(square + 1e-5);
    double total = exps;
    Norms.layerNorm(x, OFFSET, out, OFFSET, n, 1e-5f);
    check(out, n, 1e-4, i -> (get(x, i) - center) / deviation);
    Norms.rmsNorm(x, OFFSET, out, OFFSET, n, 1e-5f);
    check(out, n, 1e-6, i -> get(x, i) / root);
    Norms.softmax(x, OFFSET, out, OFFSET, n, 0.5f);
    check(out, n, 1e-6, i -> Math.exp(get(x, i) * 0.5) / total);
    MemorySegment copy = row(n, 0);
    MemorySegment.copy(x, 0, copy, 0, x.byteSize());
    Norms.softmax(copy, OFFSET, copy, OFFSET, n, 0.5f);
    check(copy, n, 1e-6, i -> Math.exp(get(x, i) * 0.5) / total);
  }

  @Test
  @DisplayName("JAVA-6: NaN stays NaN, and infinity does not spread to other elements")
  void specialValues() {
    int n = 20;
    MemorySegment x = row(n, 1);
    MemorySegment out = row(n, 0);
    set(x, 3, Float.NaN);
    set(x, 18, Float.POSITIVE_INFINITY);
    Activations.silu(x, OFFSET, out, OFFSET, n);
    assertThat(get(out, 3)).isNaN();
    assertThat(get(out, 18)).isEqualTo(Float.POSITIVE_INFINITY);
    assertThat(get(out, 4)).isFinite();
    assertThat(Reductions.max(x, OFFSET, n)).isNaN();
  }

  @Test
  @DisplayName("JAVA-6: a row that a segment does not hold is refused")
  void outOfBounds() {
    MemorySegment x = arena.allocate(64, 4);
    MemorySegment out = arena.allocate(60, 4);
    assertThatThrownBy(() -> Rows.add(x, 0, x, 0, out, 0, 16))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }
}
