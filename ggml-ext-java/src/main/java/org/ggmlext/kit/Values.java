package org.ggmlext.kit;

import org.ggmlext.Shape;

/** Values of an input in double precision, without gaps, in ggml's order. */
public final class Values {
  private final Shape shape;
  private final double[] data;

  Values(Shape shape, double[] data) {
    this.shape = shape;
    this.data = data;
  }

  /** The sizes. */
  public Shape shape() {
    return shape;
  }

  /** All values, the fastest dimension first; a copy. */
  public double[] toArray() {
    return data.clone();
  }

  double[] data() {
    return data;
  }

  /** The value at these indices. */
  public double get(long i0, long i1, long i2, long i3) {
    long at = ((i3 * shape.ne2() + i2) * shape.ne1() + i1) * shape.ne0() + i0;
    return data[Math.toIntExact(at)];
  }
}
