package org.ggmlext;

import java.util.function.BiFunction;
import java.util.function.DoubleUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class ActivationOpsTest {
  /** Of values that ggml takes from a table of half-precision floats. */
  private static final double TABLE = 2e-3;

  private static final double EXACT = 2e-6;

  @FunctionalInterface
  interface Unary extends BiFunction<Context, Tensor, Tensor> {}

  @FunctionalInterface
  interface Gate {
    Tensor apply(Context context, Tensor a, Tensor b);
  }

  static Stream<Arguments> activations() {
    return Stream.of(
        of("relu", Context::relu, x -> Math.max(x, 0), EXACT),
        of("reluInplace", Context::reluInplace, x -> Math.max(x, 0), EXACT),
        of("sigmoid", Context::sigmoid, ActivationOpsTest::sigmoid, EXACT),
        of("sigmoidInplace", Context::sigmoidInplace, ActivationOpsTest::sigmoid, EXACT),
        of("tanh", Context::tanh, Math::tanh, EXACT),
        of("tanhInplace", Context::tanhInplace, Math::tanh, EXACT),
        of("gelu", Context::gelu, ActivationOpsTest::gelu, TABLE),
        of("geluInplace", Context::geluInplace, ActivationOpsTest::gelu, TABLE),
        of("geluErf", Context::geluErf, x -> x * (1 + erf(x / Math.sqrt(2))) / 2, EXACT),
        of(
            "geluErfInplace",
            Context::geluErfInplace,
            x -> x * (1 + erf(x / Math.sqrt(2))) / 2,
            EXACT),
        of("geluQuick", Context::geluQuick, x -> x * sigmoid(1.702 * x), TABLE),
        of("silu", Context::silu, x -> x * sigmoid(x), EXACT),
        of("siluInplace", Context::siluInplace, x -> x * sigmoid(x), EXACT),
        of("leakyRelu", (c, a) -> c.leakyRelu(a, 0.1f), x -> x > 0 ? x : 0.1f * x, EXACT));
  }

  private static Arguments of(
      String name, Unary operation, DoubleUnaryOperator reference, double tolerance) {
    return Arguments.of(name, operation, reference, tolerance);
  }

  @ParameterizedTest(name = "JAVA-2: {0} equals its reference")
  @MethodSource("activations")
  void activationEqualsReference(
      String name, Unary operation, DoubleUnaryOperator reference, double tolerance) {
    try (GraphRunner run = new GraphRunner()) {
      Shape shape = Shape.of(17, 3, 2);
      float[] x = run.values(shape);
      Tensor a = run.input(shape, x);
      float[] result = run.floats(c -> operation.apply(c, a));
      Close.assertNear(result, i -> reference.applyAsDouble(x[i]), tolerance);
    }
  }

  static Stream<Arguments> gates() {
    return Stream.of(
        Arguments.of(
            "swiglu",
            (Unary) Context::swiglu,
            (Gate) Context::swiglu,
            (DoubleUnaryOperator) x -> x * sigmoid(x),
            EXACT),
        Arguments.of(
            "geglu",
            (Unary) Context::geglu,
            (Gate) Context::geglu,
            (DoubleUnaryOperator) ActivationOpsTest::gelu,
            TABLE),
        Arguments.of(
            "reglu",
            (Unary) Context::reglu,
            (Gate) Context::reglu,
            (DoubleUnaryOperator) x -> Math.max(x, 0),
            EXACT));
  }

  @ParameterizedTest(name = "JAVA-2: {0} of two halves and of two tensors equals its reference")
  @MethodSource("gates")
  void gateEqualsReference(
      String name, Unary halves, Gate pair, DoubleUnaryOperator reference, double tolerance) {
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(Shape.of(8, 3));
      Tensor a = run.input(Shape.of(8, 3), x);
      Close.assertNear(
          run.floats(c -> halves.apply(c, a)),
          i -> reference.applyAsDouble(x[i / 4 * 8 + i % 4]) * x[i / 4 * 8 + 4 + i % 4],
          tolerance);
    }
    try (GraphRunner run = new GraphRunner()) {
      float[] x = run.values(Shape.of(4, 3));
      float[] y = run.values(Shape.of(4, 3));
      Tensor a = run.input(Shape.of(4, 3), x);
      Tensor b = run.input(Shape.of(4, 3), y);
      Close.assertNear(
          run.floats(c -> pair.apply(c, a, b)),
          i -> reference.applyAsDouble(x[i]) * y[i],
          tolerance);
    }
  }

  private static double sigmoid(double x) {
    return 1 / (1 + Math.exp(-x));
  }

  private static double gelu(double x) {
    return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  }

  /** The error function by its series, which converges well for small arguments. */
  private static double erf(double x) {
    double term = x;
    double sum = x;
    for (int n = 1; n < 60; n++) {
      term *= -x * x / n;
      sum += term / (2 * n + 1);
    }
    return 2 / Math.sqrt(Math.PI) * sum;
  }
}
