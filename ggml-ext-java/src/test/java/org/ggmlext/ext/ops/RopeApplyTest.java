package org.ggmlext.ext.ops;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import org.ggmlext.Tensor;
import org.ggmlext.Type;
import org.ggmlext.ext.ops.RopeApply.Pairs;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class RopeApplyTest {
  private static final int HEAD = 16;
  private static final int HEADS = 3;
  private static final int LENGTH = 5;
  private static final int BATCH = 2;

  private final OpsBench bench = new OpsBench();

  @AfterEach
  void close() {
    bench.close();
  }

  private static double angle(int pair, int position) {
    return (position + 1) * Math.pow(50, -pair / 5.0);
  }

  private Tensor matrices(int pairs) {
    float[] values = new float[4 * pairs * LENGTH];
    for (int position = 0; position < LENGTH; position++) {
      for (int pair = 0; pair < pairs; pair++) {
        int at = 4 * (position * pairs + pair);
        values[at] = values[at + 3] = (float) Math.cos(angle(pair, position));
        values[at + 1] = (float) -Math.sin(angle(pair, position));
        values[at + 2] = (float) Math.sin(angle(pair, position));
      }
    }
    return bench.floats(values, 2, 2, pairs, LENGTH);
  }

  @ParameterizedTest(name = "{0}, first {1}, {2} pairs")
  @CsvSource({
    "INTERLEAVED, 0, 8",
    "INTERLEAVED, 4, 3",
    "SPLIT_HALF, 0, 8",
    "SPLIT_HALF, 2, 5",
  })
  @DisplayName("ROPE-1: pairs are turned as in double precision, the other features copied")
  void turns(Pairs kind, int first, int pairs) {
    Tensor x = bench.floats(HEAD, HEADS, LENGTH, BATCH);

    Tensor y = bench.compute(RopeApply.create(bench.nodes, x, matrices(pairs), kind, first));

    assertThat(y.shape()).isEqualTo(x.shape());
    float[] in = x.getFloats();
    float[] out = y.getFloats();
    for (int row = 0; row < HEADS * LENGTH * BATCH; row++) {
      int position = row / HEADS % LENGTH;
      double[] expected = new double[HEAD];
      for (int i = 0; i < HEAD; i++) {
        expected[i] = in[row * HEAD + i];
      }
      for (int pair = 0; pair < pairs; pair++) {
        int a = first + (kind == Pairs.INTERLEAVED ? 2 * pair : pair);
        int b = kind == Pairs.INTERLEAVED ? a + 1 : a + pairs;
        double cos = Math.cos(angle(pair, position));
        double sin = Math.sin(angle(pair, position));
        expected[a] = in[row * HEAD + a] * cos - in[row * HEAD + b] * sin;
        expected[b] = in[row * HEAD + a] * sin + in[row * HEAD + b] * cos;
      }
      for (int i = 0; i < HEAD; i++) {
        assertThat((double) out[row * HEAD + i]).isCloseTo(expected[i], offset(1e-6));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  @DisplayName("ROPE-1: what does not fit is refused when the node is made, and says why")
  void refuses(Pairs pairs) {
    Tensor x = bench.any(Type.F32, HEAD, HEADS, LENGTH);

    assertThatThrownBy(
            () ->
                RopeApply.create(
                    bench.nodes, x, bench.any(Type.F32, 2, 2, 8, LENGTH + 1), pairs, 0))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("pe has 6 positions, expected 5");
    assertThatThrownBy(
            () -> RopeApply.create(bench.nodes, x, bench.any(Type.F32, 4, 8, LENGTH), pairs))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("expected F32 [2, 2, pairs, positions]");
    assertThatThrownBy(
            () ->
                RopeApply.create(
                    bench.nodes,
                    bench.any(Type.F16, HEAD, HEADS, LENGTH),
                    bench.any(Type.F32, 2, 2, 8, LENGTH),
                    pairs))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("x has type F16, expected F32");
    Tensor transposed = bench.nodes.transpose(bench.any(Type.F32, HEADS, HEAD, LENGTH));
    Tensor pe = bench.any(Type.F32, 2, 2, 8, LENGTH);
    assertThatThrownBy(() -> RopeApply.create(bench.nodes, transposed, pe, pairs))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("the elements in a row of x are")
        .hasMessageContaining("bytes apart, expected successive ones (4 bytes)");
    assertThatThrownBy(
            () -> RopeApply.create(bench.nodes, x, bench.any(Type.F32, 2, 2, 8, LENGTH), pairs, 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("16");
  }

  @Test
  @DisplayName("ROPE-1: what is null is named")
  void namesNull() {
    Tensor x = bench.any(Type.F32, HEAD, HEADS, LENGTH);
    Tensor pe = bench.any(Type.F32, 2, 2, 8, LENGTH);
    assertThatNullPointerException()
        .isThrownBy(() -> RopeApply.create(null, x, pe, Pairs.INTERLEAVED))
        .withMessage("nodes");
    assertThatNullPointerException()
        .isThrownBy(() -> RopeApply.create(bench.nodes, null, pe, Pairs.INTERLEAVED))
        .withMessage("x");
    assertThatNullPointerException()
        .isThrownBy(() -> RopeApply.create(bench.nodes, x, null, Pairs.INTERLEAVED))
        .withMessage("pe");
    assertThatNullPointerException()
        .isThrownBy(() -> RopeApply.create(bench.nodes, x, pe, null))
        .withMessage("pairs");
  }
}
