package org.ggmlext.kit;

import org.ggmlext.Shape;

/** Where an input's elements lie. */
enum Layout {
  /** Alone in its memory. */
  CONTIGUOUS("contiguous"),
  /** A view whose rows and planes have gaps between them. */
  STRIDED("strided"),
  /** A view whose first two dimensions are swapped, so that rows are not contiguous. */
  TRANSPOSED("transposed"),
  /** A view whose second and third dimension are swapped; rows are contiguous. */
  PERMUTED("permuted"),
  /** A contiguous view that begins within its memory. */
  OFFSET("with an offset"),
  /** A result that nothing else reads, so that the output may take its memory. */
  COMPUTED("overwritten by the output");

  private final String text;

  Layout(String text) {
    this.text = text;
  }

  String text() {
    return text;
  }

  /** Whether a tensor of this shape can lie so, and differently from contiguous. */
  boolean appliesTo(Shape shape) {
    return switch (this) {
      case CONTIGUOUS, OFFSET, COMPUTED -> true;
      case STRIDED -> shape.rows() > 1;
      case TRANSPOSED -> shape.ne0() > 1 && shape.ne1() > 1;
      case PERMUTED -> shape.ne1() > 1 && shape.ne2() > 1;
    };
  }
}
