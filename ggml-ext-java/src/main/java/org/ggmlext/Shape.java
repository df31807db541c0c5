package org.ggmlext;

/**
 * The sizes of a tensor's four dimensions in ggml's order: the fastest one first.
 *
 * @param ne0 elements of a row
 * @param ne1 rows
 * @param ne2 matrices
 * @param ne3 batches of matrices
 */
public record Shape(long ne0, long ne1, long ne2, long ne3) {
  /** Number of dimensions of every ggml tensor. */
  public static final int DIMS = 4;

  /** Checks that no size is negative and that the number of elements fits into a long. */
  public Shape {
    if (ne0 < 0 || ne1 < 0 || ne2 < 0 || ne3 < 0) {
      throw new IllegalArgumentException(
          "a shape has no negative size: [%d, %d, %d, %d]".formatted(ne0, ne1, ne2, ne3));
    }
    try {
      Math.multiplyExact(Math.multiplyExact(ne0, ne1), Math.multiplyExact(ne2, ne3));
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "[%d, %d, %d, %d] has more elements than a long can count".formatted(ne0, ne1, ne2, ne3),
          e);
    }
  }

  /**
   * A shape of one to four sizes, the fastest dimension first; missing ones are 1.
   *
   * @throws IllegalArgumentException if there are none, more than four, or negative ones
   */
  public static Shape of(long... ne) {
    if (ne.length < 1 || ne.length > DIMS) {
      throw new IllegalArgumentException("a shape has 1 to 4 sizes, not " + ne.length);
    }
    return new Shape(
        ne[0], ne.length > 1 ? ne[1] : 1, ne.length > 2 ? ne[2] : 1, ne.length > 3 ? ne[3] : 1);
  }

  /**
   * The size of a dimension, 0 being the fastest.
   *
   * @throws IllegalArgumentException if the dimension is not 0 to 3
   */
  public long ne(int dim) {
    return switch (dim) {
      case 0 -> ne0;
      case 1 -> ne1;
      case 2 -> ne2;
      case 3 -> ne3;
      default -> throw new IllegalArgumentException("dimensions are 0 to 3, not " + dim);
    };
  }

  /** Number of elements. */
  public long elements() {
    return ne0 * ne1 * ne2 * ne3;
  }

  /** Number of rows: the product of all sizes but the first. */
  public long rows() {
    return ne1 * ne2 * ne3;
  }

  /** Dimensions up to the last one that is not 1; at least 1. */
  public int dims() {
    for (int i = DIMS - 1; i > 0; i--) {
      if (ne(i) != 1) {
        return i + 1;
      }
    }
    return 1;
  }

  /** As {@code [ne0, ne1]}, without trailing ones. */
  @Override
  public String toString() {
    StringBuilder out = new StringBuilder("[").append(ne0);
    for (int i = 1; i < dims(); i++) {
      out.append(", ").append(ne(i));
    }
    return out.append(']').toString();
  }
}
