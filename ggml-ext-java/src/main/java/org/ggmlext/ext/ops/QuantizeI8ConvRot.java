package org.ggmlext.ext.ops;

import java.lang.invoke.MethodHandles;
import java.util.Objects;
import org.ggmlext.Context;
import org.ggmlext.GgmlException;
import org.ggmlext.Tensor;
import org.ggmlext.ext.Operator;

/**
 * {@code sd.quantize_i8_convrot.v1}: rows of F32 to INT8, with a rotation of each group of features
 * before, which spreads outliers over their group. A linear layer whose weights were rotated in the
 * same way gives what it gave without.
 *
 * <p>Each group of {@code 4^n} features is multiplied by the n-th Kronecker power of {@code 1/2 *
 * [[1,1,1,-1],[1,1,-1,1],[1,-1,1,1],[-1,1,1,1]]}. Of the row y that this gives, the scale is the
 * largest magnitude / 127, and the bytes are {@code y[k] * (1 / scale)}, rounded half to even and
 * clamped to -127 to 127. A row of zeros has scale 0 and zeros; a row with a NaN or an infinity has
 * scale NaN and zeros, and changes no other row.
 */
public final class QuantizeI8ConvRot {
  private static final int ROWS = 4;

  record Attributes(int group) {}

  private static final Operator<Attributes> OPERATOR =
      Operator.ofLibrary("sd.quantize_i8_convrot.v1", Attributes.class, MethodHandles.lookup());

  private QuantizeI8ConvRot() {}

  /**
   * Makes the node.
   *
   * @param nodes where the node is made
   * @param x F32 [K, M, ...], its rows evenly spaced
   * @param group features that are rotated together: 1 (none), 4, 16, 64 or 256; divides K
   * @return the packed rows, I8 [{@link #packedSize}]: those of x, padded with zeros to a multiple
   *     of four rows, then an F32 scale for each row of x
   * @throws IllegalArgumentException if a type or shape is another, or the kernel library is not
   *     registered
   * @throws GgmlException if the context is full
   */
  public static Tensor create(Context nodes, Tensor x, int group) {
    Objects.requireNonNull(nodes, "nodes");
    Objects.requireNonNull(x, "x");
    return OPERATOR.create(nodes, new Attributes(group), x);
  }

  /** The group of packed rows; 0 for what is no node of this operator. */
  static int groupOf(Tensor packed) {
    Attributes attributes = OPERATOR.attributesOf(packed);
    return attributes == null ? 0 : attributes.group();
  }

  /**
   * Bytes of packed rows.
   *
   * @throws IllegalArgumentException if a number is negative
   * @throws ArithmeticException if a long cannot count them
   */
  public static long packedSize(long rows, long features) {
    if (rows < 0 || features < 0) {
      throw new IllegalArgumentException(
          "%d rows of %d features, expected at least 0 of each".formatted(rows, features));
    }
    long padded = Math.multiplyExact(Math.ceilDiv(rows, (long) ROWS), ROWS);
    return Math.addExact(
        Math.multiplyExact(padded, features), Math.multiplyExact(rows, Float.BYTES));
  }

  /**
   * Where the scales of packed rows begin, in bytes.
   *
   * @throws IllegalArgumentException if a number is negative
   * @throws ArithmeticException if a long cannot count the bytes of the rows
   */
  public static long scalesOffset(long rows, long features) {
    return packedSize(rows, features) - rows * Float.BYTES;
  }
}
