package org.ggmlext;

/** What must hold of views: that they stay within what they look at. */
final class Views {
  private Views() {}

  /** A view of a shape; strides of dimensions that the view does not name are 0. */
  static void check(String op, Tensor a, Shape shape, long nb1, long nb2, long nb3, long offset) {
    Check.tensor(a.type(), shape);
    int unit = a.type().byteSize();
    if (offset < 0 || offset % unit != 0) {
      throw Check.bad(op, "the offset must be a multiple of %d bytes, not %d", unit, offset);
    }
    long row = a.type().rowSize(shape.ne0());
    long last = offset + row;
    long[] strides = {0, nb1, nb2, nb3};
    for (int i = 1; i < Shape.DIMS; i++) {
      if (strides[i] < 0 || strides[i] % unit != 0) {
        throw Check.bad(op, "nb%d must be a multiple of %d bytes, not %d", i, unit, strides[i]);
      }
      if (shape.ne(i) > 1) {
        last = saturatedAdd(last, saturatedMultiply(shape.ne(i) - 1, strides[i]));
      }
    }
    // ggml wants room for all elements even where strides make them overlap.
    last = Math.max(last, saturatedAdd(offset, row * shape.rows()));
    if (last > a.byteSize()) {
      throw Check.bad(
          op,
          "a view %s at %d reaches to byte %d, %s has %d bytes",
          shape,
          offset,
          last,
          a,
          a.byteSize());
    }
  }

  /** For another order of the dimensions, which ggml counts in ints. */
  static void reorderable(String op, Tensor a, boolean keepsRows) {
    if (a.type().isQuantized() && !keepsRows) {
      throw Check.bad(op, "rows of %s are made of blocks and cannot be taken apart", a);
    }
    for (int i = 0; i < Shape.DIMS; i++) {
      if (a.ne(i) > Integer.MAX_VALUE) {
        throw Check.bad(op, "sizes are at most %d, not %s", Integer.MAX_VALUE, a);
      }
    }
  }

  private static long saturatedMultiply(long a, long b) {
    return Math.multiplyHigh(a, b) == 0 && a * b >= 0 ? a * b : Long.MAX_VALUE;
  }

  private static long saturatedAdd(long a, long b) {
    return a + b >= 0 ? a + b : Long.MAX_VALUE;
  }
}
