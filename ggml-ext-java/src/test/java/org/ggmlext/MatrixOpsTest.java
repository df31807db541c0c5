package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MatrixOpsTest {
  private static final int K = 64;
  private static final int N = 5;
  private static final int M = 3;

  @ParameterizedTest(name = "JAVA-2: mulMat of {0} weights equals the dot products of rows")
  @CsvSource({"F32, 1e-5", "F16, 3e-3", "BF16, 3e-2", "Q8_0, 3e-2"})
  void mulMat(Type type, double tolerance) {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(Shape.of(K, N));
      float[] y = run.values(Shape.of(K, M));
      Tensor a = run.input(Shape.of(K, N), x);
      Tensor b = run.input(Shape.of(K, M), y);
      Tensor product = run.context().mulMat(type == Type.F32 ? a : run.context().cast(a, type), b);
      assertThat(product.shape()).isEqualTo(Shape.of(N, M));
      float[] result = run.compute(product).getFloats();
      // The error of a sum grows with the sum of its terms' sizes, not with the sum.
      Close.assertNear(result, i -> dot(x, i % N, y, i / N), tolerance * Math.sqrt(K));
    }
  }

  private static double dot(float[] x, int row, float[] y, int column) {
    double sum = 0;
    for (int k = 0; k < K; k++) {
      sum += (double) x[row * K + k] * y[column * K + k];
    }
    return sum;
  }

  @Test
  @DisplayName("JAVA-2: mulMat repeats the first source's matrices")
  void mulMatBroadcasts() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2, 1), 1, 10);
      Tensor b = run.input(Shape.of(2, 1, 3), 1, 2, 3, 4, 5, 6);
      Tensor product = run.compute(run.context().mulMat(a, b));
      assertThat(product.shape()).isEqualTo(Shape.of(1, 1, 3));
      assertThat(product.getFloats()).containsExactly(21, 43, 65);
    }
  }

  @Test
  @DisplayName("JAVA-2: mulMatId takes the matrix that the id names")
  void mulMatId() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor experts = run.input(Shape.of(2, 1, 3), 1, 0, 0, 1, 1, 1);
      Tensor b = run.input(Shape.of(2, 1, 2), 5, 7, 11, 13);
      Tensor ids = run.ints(Shape.of(1, 2), 2, 1);
      Tensor product = run.compute(run.context().mulMatId(experts, b, ids));
      assertThat(product.shape()).isEqualTo(Shape.of(1, 1, 2));
      assertThat(product.getFloats()).containsExactly(12, 13);
    }
  }

  @Test
  @DisplayName("JAVA-2: an expert id out of range is refused when the graph is computed")
  void mulMatIdOutOfRange() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor experts = run.input(Shape.of(2, 1, 3), 1, 0, 0, 1, 1, 1);
      Tensor b = run.input(Shape.of(2, 1, 1), 5, 7);
      Tensor ids = run.ints(Shape.of(1, 1), 3).name("experts");
      assertThatThrownBy(() -> run.compute(run.context().mulMatId(experts, b, ids)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("experts")
          .hasMessageContaining("is 3, not 0 to 2");
    }
  }

  @Test
  @DisplayName("JAVA-2: outProd sums the products of rows")
  void outProd() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2, 2), 1, 2, 3, 4);
      Tensor b = run.input(Shape.of(3, 2), 1, 0, 2, 0, 1, 1);
      Tensor product = run.compute(run.context().outProd(a, b));
      assertThat(product.shape()).isEqualTo(Shape.of(2, 3));
      assertThat(product.getFloats()).containsExactly(1, 2, 3, 4, 5, 8);
    }
  }
}
