package org.ggmlext.kit;

import java.util.Objects;
import java.util.random.RandomGenerator;
import org.ggmlext.Shape;
import org.ggmlext.Type;

/**
 * An input of a graph that is checked; its values are generated, evenly between two bounds.
 *
 * @param type F32, F16, BF16, F64, or I8 to I64, which get whole numbers
 * @param shape its sizes, each at least 1
 * @param low smallest value
 * @param high largest value
 */
public record Input(Type type, Shape shape, double low, double high) {
  public Input {
    Objects.requireNonNull(shape, "shape");
    if (type.isQuantized()) {
      throw Elements.unsupported(type);
    }
    if (shape.elements() < 1) {
      throw new IllegalArgumentException("an input has at least one element, not " + shape);
    }
    if (!(low <= high)) {
      throw new IllegalArgumentException(
          "values lie between a low and a high bound, not %s and %s".formatted(low, high));
    }
  }

  /** Values between -2 and 2. */
  public static Input of(Type type, Shape shape) {
    return new Input(type, shape, -2, 2);
  }

  /** Values between -2 and 2; one to four sizes, the fastest dimension first. */
  public static Input of(Type type, long... ne) {
    return of(type, Shape.of(ne));
  }

  /** The same with values between these bounds, both included for whole numbers. */
  public Input between(double newLow, double newHigh) {
    return new Input(type, shape, newLow, newHigh);
  }

  /** Values as elements of the type hold them. */
  Values values(RandomGenerator random) {
    double[] values = new double[Math.toIntExact(shape.elements())];
    for (int i = 0; i < values.length; i++) {
      values[i] = Elements.round(type, low + random.nextDouble() * (high - low));
    }
    return new Values(shape, values);
  }

  /** Such as {@code F32 [64, 12]}. */
  @Override
  public String toString() {
    return type + " " + shape;
  }
}
