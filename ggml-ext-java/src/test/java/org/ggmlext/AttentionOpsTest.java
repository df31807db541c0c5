package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class AttentionOpsTest {
  private static final int HEAD = 8;
  private static final int HEADS = 2;
  private static final int TOKENS = 3;
  private static final Shape SHAPE = Shape.of(HEAD, HEADS, TOKENS);
  private static final int[] POSITIONS = {0, 5, 11};

  @ParameterizedTest(name = "JAVA-2: rope in mode {0} rotates pairs by their position")
  @EnumSource(RopeMode.class)
  void rope(RopeMode mode) {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      float[] f = {1, 2, 4};
      Tensor a = run.input(SHAPE, x);
      Tensor positions = run.ints(Shape.of(TOKENS), POSITIONS);
      Tensor factors = run.input(Shape.of(3), f);
      RopeParams params = RopeParams.of(6, mode, 10000);
      Close.assertNear(
          run.floats(c -> c.rope(a, positions, params)),
          i -> rotated(x, i, mode, new float[] {1, 1, 1}),
          1e-5);
      Close.assertNear(
          run.floats(c -> c.ropeInplace(a, positions, factors, params)),
          i -> rotated(x, i, mode, f),
          1e-5);
    }
  }

  /** Six elements of each row are rotated, two are copied. */
  private static double rotated(float[] x, int index, RopeMode mode, float[] factors) {
    int dims = 6;
    int row = index / HEAD * HEAD;
    int i = index - row;
    if (i >= dims) {
      return x[index];
    }
    boolean normal = mode == RopeMode.NORMAL;
    int pair = normal ? i / 2 : i % (dims / 2);
    int first = normal ? 2 * pair : pair;
    int second = normal ? first + 1 : pair + dims / 2;
    int position = POSITIONS[index / (HEAD * HEADS)];
    double angle = position * Math.pow(10000, -2.0 * pair / dims) / factors[pair];
    return i == first
        ? x[row + first] * Math.cos(angle) - x[row + second] * Math.sin(angle)
        : x[row + first] * Math.sin(angle) + x[row + second] * Math.cos(angle);
  }

  @ParameterizedTest(name = "JAVA-2: flashAttnExt of {0} keys equals softmax attention")
  @CsvSource({"F32, 2e-3", "F16, 4e-3"})
  void flashAttention(Type type, double tolerance) {
    int row = 32;
    int keys = 4;
    try (GraphRunner run = new GraphRunner()) {
      float[] q = run.values(Shape.of(row, TOKENS, 2));
      float[] k = run.values(Shape.of(row, keys, 1));
      float[] v = run.values(Shape.of(row, keys, 1));
      Tensor tq = run.input(Shape.of(row, TOKENS, 2), q);
      Tensor tk = run.input(type, Shape.of(row, keys, 1), k);
      Tensor tv = run.input(type, Shape.of(row, keys, 1), v);
      float[] m = new float[keys * TOKENS];
      m[1] = Float.NEGATIVE_INFINITY;
      m[keys + 2] = -1;
      Tensor mask = run.input(Type.F16, Shape.of(keys, TOKENS), m);
      Tensor result = run.compute(run.context().flashAttnExt(tq, tk, tv, mask, 0.25f, 0, 0));
      assertThat(result.shape()).isEqualTo(Shape.of(row, 2, TOKENS));
      Close.assertNear(
          result.getFloats(),
          i -> attention(q, k, v, m, i % row, i / row % 2, i / row / 2),
          tolerance);
    }
  }

  private static double attention(
      float[] q, float[] k, float[] v, float[] mask, int element, int head, int token) {
    int row = 32;
    int keys = 4;
    double sum = 0;
    double weighted = 0;
    for (int key = 0; key < keys; key++) {
      double score = 0;
      for (int i = 0; i < row; i++) {
        score += (double) q[(head * TOKENS + token) * row + i] * k[key * row + i];
      }
      double weight = Math.exp(score * 0.25 + mask[token * keys + key]);
      sum += weight;
      weighted += weight * v[key * row + element];
    }
    return weighted / sum;
  }

  @Test
  @DisplayName("JAVA-2: position 0 is not rotated")
  void positionZero() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2, 1, 1), 3, 4);
      Tensor positions = run.ints(Shape.of(1), 0);
      RopeParams params = RopeParams.of(2, RopeMode.NORMAL, 10000);
      assertThat(run.floats(c -> c.rope(a, positions, params))).containsExactly(3, 4);
    }
  }
}
