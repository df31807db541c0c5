package org.ggmlext.ext.ops;

import java.util.Objects;
import java.util.Set;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;

/**
 * A linear layer in INT8 whose weights were rotated in groups of features. It takes the place of
 * {@code add(mulMat(weight, x), bias)} with F32 weights.
 *
 * @param linear weights, their scale, and the bias where there is one
 * @param group features that were rotated together: 1 (none), 4, 16, 64 or 256
 */
public record Int8Layer(LinearI8 linear, int group) {
  private static final Set<Integer> GROUPS = Set.of(1, 4, 16, 64, 256);

  /**
   * A layer of these.
   *
   * @throws IllegalArgumentException if the group is another number
   */
  public Int8Layer {
    Objects.requireNonNull(linear, "linear");
    if (!GROUPS.contains(group)) {
      throw new IllegalArgumentException(
          "the group is %d, expected 1, 4, 16, 64 or 256".formatted(group));
    }
  }

  /**
   * Makes the layer's nodes.
   *
   * @param nodes where they are made
   * @param x F32 [K, M, ...], its rows evenly spaced
   * @return F32 [N, M, ...]
   * @throws IllegalArgumentException if a type or shape is another, or the kernel library is not
   *     registered
   * @throws GgmlException if the context is full
   */
  public Tensor apply(Context nodes, Tensor x) {
    if (group == 1) {
      return linear.create(nodes, x);
    }
    return apply(nodes, QuantizeI8ConvRot.create(nodes, x, group), x);
  }

  /**
   * As {@link #apply(Context, Tensor)} where the rows were quantised before: layers of the same
   * input share them.
   *
   * @param packed what {@link QuantizeI8ConvRot} made of x with this layer's group
   * @param x where the output gets its sizes from
   * @throws IllegalArgumentException if a type or shape is another, the rows were rotated in other
   *     groups (where {@code packed} is a tensor that was written, nobody can tell), or the kernel
   *     library is not registered
   */
  public Tensor apply(Context nodes, Tensor packed, Tensor x) {
    int packedGroup = QuantizeI8ConvRot.groupOf(packed);
    if (packedGroup != 0 && packedGroup != group) {
      throw new IllegalArgumentException(
          "the rows are packed with group %d, the layer's weights were rotated with group %d"
              .formatted(packedGroup, group));
    }
    Tensor y = linear.createPacked(nodes, packed, x.shape().rows());
    if (x.ne(2) == 1 && x.ne(3) == 1) {
      return y;
    }
    return nodes.reshape(y, linear.weight().ne(1), x.ne(1), x.ne(2), x.ne(3));
  }
}
