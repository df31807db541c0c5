package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;

class ReduceOpsTest {
  private static final Shape SHAPE = Shape.of(7, 3);

  @Test
  @DisplayName("JAVA-2: sum adds all elements")
  void sum() {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      Tensor a = run.input(SHAPE, x);
      double expected = 0;
      for (float value : x) {
        expected += value;
      }
      double reference = expected;
      Close.assertNear(run.floats(c -> c.sum(a)), i -> reference, 1e-6);
    }
  }

  @Test
  @DisplayName("JAVA-2: sumRows and mean give one value a row")
  void rows() {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      Tensor a = run.input(SHAPE, x);
      Tensor sums = run.context().sumRows(a);
      assertThat(sums.shape()).isEqualTo(Shape.of(1, 3));
      Close.assertNear(run.compute(sums).getFloats(), i -> rowSum(x, i), 1e-6);
      Close.assertNear(run.floats(c -> c.mean(a)), i -> rowSum(x, i) / 7, 1e-6);
    }
  }

  private static double rowSum(float[] x, int row) {
    double sum = 0;
    for (int i = 0; i < 7; i++) {
      sum += x[7 * row + i];
    }
    return sum;
  }

  @Test
  @DisplayName("JAVA-2: cumsum adds up along each row")
  void cumsum() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(3, 2), 1, 2, 3, 10, 20, 30);
      assertThat(run.floats(c -> c.cumsum(a))).containsExactly(1, 3, 6, 10, 30, 60);
    }
  }

  @Test
  @DisplayName("JAVA-2: argmax gives the index of each row's largest element")
  void argmax() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(3, 2), 1, 9, 3, 4, 2, 1);
      Tensor result = run.compute(run.context().argmax(a));
      assertThat(result.type()).isEqualTo(Type.I32);
      assertThat(result.getInts()).containsExactly(1, 0);
    }
  }

  @Test
  @DisplayName("JAVA-2: argsort gives the indices in either order")
  void argsort() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(4), 3, 1, 4, 2);
      assertThat(run.compute(run.context().argsort(a, ReduceOps.SortOrder.ASCENDING)).getInts())
          .containsExactly(1, 3, 0, 2);
      assertThat(run.compute(run.context().argsort(a, ReduceOps.SortOrder.DESCENDING)).getInts())
          .containsExactly(2, 0, 3, 1);
    }
  }
}
