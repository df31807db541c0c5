package org.ggmlext.ext;

import java.util.Objects;
import org.ggmlext.Shape;
import org.ggmlext.Type;

/**
 * Type and shape of an operator's output.
 *
 * @param type element type
 * @param shape each size at least 1
 */
public record OutputSpec(Type type, Shape shape) {
  /** Checks that the output has elements. */
  public OutputSpec {
    Objects.requireNonNull(type, "type");
    if (shape.elements() < 1) {
      throw new IllegalArgumentException("an output has at least one element, not " + shape);
    }
  }

  /**
   * An output of this type and shape.
   *
   * @param type element type
   * @param ne 1 to 4 sizes in ggml's order, each at least 1
   * @throws IllegalArgumentException if there are none, more than four, or one is below 1
   */
  public static OutputSpec of(Type type, long... ne) {
    return new OutputSpec(type, Shape.of(ne));
  }

  /** An output of the type and shape of this tensor. */
  public static OutputSpec like(TensorInfo tensor) {
    return new OutputSpec(tensor.type(), tensor.shape());
  }
}
