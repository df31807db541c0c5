package org.ggmlext;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.function.BiFunction;
import java.util.function.DoubleBinaryOperator;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DisplayName;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class ElementwiseOpsTest {
  private static final Shape SHAPE = Shape.of(5, 3, 2);

  /** An operation of the context on one tensor. */
  @FunctionalInterface
  interface Unary extends BiFunction<Context, Tensor, Tensor> {}

  /** An operation of the context on two tensors. */
  @FunctionalInterface
  interface Binary {
    Tensor apply(Context context, Tensor a, Tensor b);
  }

  static Stream<Arguments> unaries() {
    return Stream.of(
        unary("scale", (c, a) -> c.scale(a, 1.5f), x -> 1.5 * x),
        unary("scaleInplace", (c, a) -> c.scaleInplace(a, -2), x -> -2 * x),
        unary("scaleBias", (c, a) -> c.scaleBias(a, 2, 0.5f), x -> 2 * x + 0.5),
        unary("sqr", Context::sqr, x -> x * x),
        unary("sqrInplace", Context::sqrInplace, x -> x * x),
        unary("sqrt of sqr", (c, a) -> c.sqrt(c.sqr(a)), Math::abs),
        unary("sqrtInplace", (c, a) -> c.sqrtInplace(c.sqr(a)), Math::abs),
        unary("log of exp", (c, a) -> c.log(c.exp(a)), x -> x),
        unary("exp", Context::exp, Math::exp),
        unary("sin", Context::sin, Math::sin),
        unary("cos", Context::cos, Math::cos),
        unary("abs", Context::abs, Math::abs),
        unary("neg", Context::neg, x -> -x),
        unary("clamp", (c, a) -> c.clamp(a, -1, 0.5f), x -> Math.clamp(x, -1, 0.5)));
  }

  private static Arguments unary(String name, Unary operation, DoubleUnaryOperator reference) {
    return Arguments.of(name, operation, reference);
  }

  @ParameterizedTest(name = "JAVA-2: {0} equals its reference")
  @MethodSource("unaries")
  void unaryEqualsReference(String name, Unary operation, DoubleUnaryOperator reference) {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(SHAPE);
      Tensor a = run.input(SHAPE, x);
      float[] result = run.floats(c -> operation.apply(c, a));
      Close.assertNear(result, i -> reference.applyAsDouble(x[i]), 1e-6);
    }
  }

  static Stream<Arguments> binaries() {
    return Stream.of(
        binary("add", Context::add, (x, y) -> x + y),
        binary("addInplace", Context::addInplace, (x, y) -> x + y),
        binary("sub", Context::sub, (x, y) -> x - y),
        binary("subInplace", Context::subInplace, (x, y) -> x - y),
        binary("mul", Context::mul, (x, y) -> x * y),
        binary("mulInplace", Context::mulInplace, (x, y) -> x * y),
        binary("div", Context::div, (x, y) -> x / y),
        binary("divInplace", Context::divInplace, (x, y) -> x / y));
  }

  private static Arguments binary(String name, Binary operation, DoubleBinaryOperator reference) {
    return Arguments.of(name, operation, reference);
  }

  @ParameterizedTest(name = "JAVA-2: {0} repeats its second source and equals its reference")
  @MethodSource("binaries")
  void binaryEqualsReference(String name, Binary operation, DoubleBinaryOperator reference) {
    try (GraphRunner run = new GraphRunner()) {
      Shape small = Shape.of(5, 1, 2);
      float[] x = run.values(SHAPE);
      float[] y = run.values(small);
      Tensor a = run.input(SHAPE, x);
      Tensor b = run.input(small, y);
      float[] result = run.floats(c -> operation.apply(c, a, b));
      Close.assertNear(result, i -> reference.applyAsDouble(x[i], y[i % 5 + i / 15 * 5]), 1e-6);
    }
  }

  @Test
  @DisplayName("JAVA-2: halves are added with floats and stay halves")
  void halfPlusFloat() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Type.F16, Shape.of(3), 1, 2.5f, -3);
      Tensor b = run.input(Shape.of(3), 0.5f, 0.25f, 1);
      Tensor sum = run.compute(run.context().add(a, b));
      assertThat(sum.type()).isEqualTo(Type.F16);
      assertThat(sum.getFloats()).containsExactly(1.5f, 2.75f, -2);
    }
  }

  @Test
  @DisplayName("JAVA-2: clamp leaves its source as it is")
  void clampCopies() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(3), -5, 0, 5).asOutput();
      assertThat(run.floats(c -> c.clamp(a, -1, 1))).containsExactly(-1, 0, 1);
      assertThat(a.getFloats()).containsExactly(-5, 0, 5);
    }
  }

  @Test
  @DisplayName("JAVA-2: an operation in place writes over its source")
  void inplaceWritesOver() {
    try (GraphRunner run = new GraphRunner()) {
      Tensor a = run.input(Shape.of(2), 1, 2).asOutput();
      Tensor doubled = run.compute(run.context().scaleInplace(a, 2));
      assertThat(doubled.isView()).isTrue();
      assertThat(a.getFloats()).containsExactly(2, 4);
    }
  }

  @Test
  @DisplayName("JAVA-2: NaN and infinity are data")
  void notANumberIsData() {
    try (GraphRunner run = new GraphRunner()) {
      float[] odd = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, -0f};
      Tensor a = run.input(Shape.of(4), odd);
      Tensor b = run.input(Shape.of(4), 1, 1, 1, 1);
      assertThat(run.floats(c -> c.mul(a, b))).containsExactly(odd);
    }
  }

  @Test
  @DisplayName("JAVA-2: a row of one element with an odd stride is refused, not computed")
  void oddStrideOfOneElement() {
    try (GraphRunner run = new GraphRunner()) {
      Context c = run.context();
      Tensor column = c.permute(run.input(Shape.of(4, 1), 1, 2, 3, 4), 1, 0, 2, 3);
      assertThat(column.ne(0)).isEqualTo(1);
      assertThat(column.nb(0)).isEqualTo(16);
      assertThatThrownBy(() -> c.add(column, column))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("add")
          .hasMessageContaining("cont()");
      assertThat(run.floats(x -> x.add(x.cont(column), x.cont(column))))
          .containsExactly(2, 4, 6, 8);
    }
  }
}
