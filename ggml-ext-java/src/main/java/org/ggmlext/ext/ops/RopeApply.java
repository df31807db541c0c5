package org.ggmlext.ext.ops;

import java.lang.invoke.MethodHandles;
import java.util.Objects;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Operator;

/**
 * {@code sd.rope_apply.v1}: pairs of features are turned by matrices that are given, so that any
 * kind of rotary position embedding can be applied, image models' over several axes included.
 */
public final class RopeApply {
  /** Which features make a pair. */
  public enum Pairs {
    /** Pair i is the features {@code first + 2i} and {@code first + 2i + 1}. */
    INTERLEAVED,
    /** Pair i of P is the features {@code first + i} and {@code first + i + P}. */
    SPLIT_HALF
  }

  record Attributes(Pairs pairs, int first) {}

  private static final Operator<Attributes> OPERATOR =
      Operator.ofLibrary("sd.rope_apply.v1", Attributes.class, MethodHandles.lookup());

  private RopeApply() {}

  /** All features from the first one on, as many as {@code pe} has pairs for. */
  public static Tensor create(Context nodes, Tensor x, Tensor pe, Pairs pairs) {
    return create(nodes, x, pe, pairs, 0);
  }

  /**
   * Makes the node. Features outside of the pairs are copied.
   *
   * @param nodes where the node is made
   * @param x F32 [d_head, n_head, L, N]; the elements of a row follow one another, other strides
   *     are free
   * @param pe F32 [2, 2, P, L]: for each pair and position the matrix [[cos, -sin], [sin, cos]],
   *     its four values one after the other
   * @param pairs which features make a pair
   * @param first the first feature that is turned, even; {@code first + 2 P} is at most d_head
   * @return F32 [d_head, n_head, L, N]
   * @throws IllegalArgumentException if a type or shape is another, or the kernel library is not
   *     registered
   * @throws GgmlException if the context is full
   */
  public static Tensor create(Context nodes, Tensor x, Tensor pe, Pairs pairs, int first) {
    Objects.requireNonNull(nodes, "nodes");
    Objects.requireNonNull(x, "x");
    Objects.requireNonNull(pe, "pe");
    Objects.requireNonNull(pairs, "pairs");
    return OPERATOR.create(nodes, new Attributes(pairs, first), x, pe);
  }
}
