package org.ggmlext;

import org.ggmlext.bindings.ggml_h;

/**
 * Other shapes of the same data (reshape, view, permute: no data move), copies, and operations that
 * put rows or whole tensors together.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface ShapeOps permits Context {
  /** The same data in another shape of as many elements. a is contiguous. */
  default Tensor reshape(Tensor a, long... ne) {
    Shape shape = Shape.of(ne);
    Check.tensor(a.type(), shape);
    Check.contiguous("reshape", "a", a);
    Check.elements("reshape", a, shape);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_reshape_4d(
                ctx, a.handle(), shape.ne0(), shape.ne1(), shape.ne2(), shape.ne3()),
        a);
  }

  /**
   * A vector that looks at a's data.
   *
   * @param offset bytes from a's begin
   */
  default Tensor view1d(Tensor a, long ne0, long offset) {
    Views.check("view1d", a, Shape.of(ne0), a.type().byteSize(), 0, 0, offset);
    return Make.one(this, ctx -> ggml_h.ggml_view_1d(ctx, a.handle(), ne0, offset), a);
  }

  /**
   * A matrix that looks at a's data.
   *
   * @param nb1 bytes from one row to the next
   * @param offset bytes from a's begin
   */
  default Tensor view2d(Tensor a, long ne0, long ne1, long nb1, long offset) {
    Views.check("view2d", a, Shape.of(ne0, ne1), nb1, 0, 0, offset);
    return Make.one(this, ctx -> ggml_h.ggml_view_2d(ctx, a.handle(), ne0, ne1, nb1, offset), a);
  }

  /**
   * Matrices that look at a's data.
   *
   * @param nb1 bytes from one row to the next
   * @param nb2 bytes from one matrix to the next
   * @param offset bytes from a's begin
   */
  default Tensor view3d(Tensor a, long ne0, long ne1, long ne2, long nb1, long nb2, long offset) {
    Views.check("view3d", a, Shape.of(ne0, ne1, ne2), nb1, nb2, 0, offset);
    return Make.one(
        this, ctx -> ggml_h.ggml_view_3d(ctx, a.handle(), ne0, ne1, ne2, nb1, nb2, offset), a);
  }

  /**
   * A tensor of any shape that looks at a's data.
   *
   * @param nb1 bytes from one row to the next
   * @param nb2 bytes from one matrix to the next
   * @param nb3 bytes from one batch of matrices to the next
   * @param offset bytes from a's begin
   */
  default Tensor view4d(Tensor a, Shape shape, long nb1, long nb2, long nb3, long offset) {
    Views.check("view4d", a, shape, nb1, nb2, nb3, offset);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_view_4d(
                ctx,
                a.handle(),
                shape.ne0(),
                shape.ne1(),
                shape.ne2(),
                shape.ne3(),
                nb1,
                nb2,
                nb3,
                offset),
        a);
  }

  /**
   * The same data with the dimensions in another order: a's dimension i becomes the i-th of these.
   * A quantised a keeps dimension 0.
   */
  default Tensor permute(Tensor a, int axis0, int axis1, int axis2, int axis3) {
    int seen = 0;
    for (int axis : new int[] {axis0, axis1, axis2, axis3}) {
      seen |= axis >= 0 && axis < Shape.DIMS ? 1 << axis : 0;
    }
    if (seen != 0b1111) {
      throw Check.bad(
          "permute", "axes are 0 to 3, each once: %d, %d, %d, %d", axis0, axis1, axis2, axis3);
    }
    Views.reorderable("permute", a, axis0 == 0);
    return Make.one(
        this, ctx -> ggml_h.ggml_permute(ctx, a.handle(), axis0, axis1, axis2, axis3), a);
  }

  /** The same data with rows and columns swapped. a is not quantised. */
  default Tensor transpose(Tensor a) {
    Views.reorderable("transpose", a, false);
    return Make.one(this, ctx -> ggml_h.ggml_transpose(ctx, a.handle()), a);
  }

  /** A contiguous copy. */
  default Tensor cont(Tensor a) {
    Check.copyable("cont", a, a.type(), true);
    return Make.one(this, ctx -> ggml_h.ggml_cont(ctx, a.handle()), a);
  }

  /** A contiguous copy in another shape of as many elements. a is not quantised. */
  default Tensor cont(Tensor a, long... ne) {
    Shape shape = Shape.of(ne);
    Check.tensor(a.type(), shape);
    Check.copyable("cont", a, a.type(), true);
    Check.elements("cont", a, shape);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_cont_4d(
                ctx, a.handle(), shape.ne0(), shape.ne1(), shape.ne2(), shape.ne3()),
        a);
  }

  /** A copy. */
  default Tensor dup(Tensor a) {
    Check.copyable("dup", a, a.type(), true);
    return Make.one(this, ctx -> ggml_h.ggml_dup(ctx, a.handle()), a);
  }

  /**
   * A copy in another type: between F32, F16 and BF16, from these to quantised types, from
   * quantised ones to F32, between F32 and I32.
   */
  default Tensor cast(Tensor a, Type type) {
    Check.tensor(type, a.shape());
    Check.copyable("cast", a, type, true);
    return Make.one(this, ctx -> ggml_h.ggml_cast(ctx, a.handle(), type.value()), a);
  }

  /**
   * Copies a over b, which has as many elements; types as for {@link #cast}. The result looks at b.
   */
  default Tensor cpy(Tensor a, Tensor b) {
    Check.elements("cpy", a, b.shape());
    Check.copyable("cpy", a, b.type(), b.isContiguous());
    if (b.type().isQuantized()) {
      Check.contiguous("cpy", "b", b);
    }
    return Make.one(this, ctx -> ggml_h.ggml_cpy(ctx, a.handle(), b.handle()), a, b);
  }

  /**
   * a and b one after the other along a dimension; the other sizes, and the types, are the same.
   */
  default Tensor concat(Tensor a, Tensor b, int dim) {
    if (dim < 0 || dim >= Shape.DIMS) {
      throw Check.bad("concat", "dimensions are 0 to 3, not %d", dim);
    }
    Check.type("concat", "b", b, a.type());
    for (int i = 0; i < Shape.DIMS; i++) {
      if (i != dim && a.ne(i) != b.ne(i)) {
        throw Check.bad("concat", "%s and %s differ in dimension %d, not only in %d", a, b, i, dim);
      }
    }
    if (a.type().isQuantized()) {
      throw Check.bad("concat", "a is %s: quantised tensors cannot be put together", a);
    }
    return Make.one(this, ctx -> ggml_h.ggml_concat(ctx, a.handle(), b.handle(), dim), a, b);
  }

  /**
   * a, repeated along each dimension to the shape of another tensor. F32, F16, BF16, I32 or I16.
   */
  default Tensor repeat(Tensor a, Tensor like) {
    repeatable(a, like.shape());
    return Make.one(this, ctx -> ggml_h.ggml_repeat(ctx, a.handle(), like.handle()), a, like);
  }

  /** a, repeated along each dimension to a shape. F32, F16, BF16, I32 or I16. */
  default Tensor repeat(Tensor a, Shape shape) {
    Check.tensor(a.type(), shape);
    repeatable(a, shape);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_repeat_4d(
                ctx, a.handle(), shape.ne0(), shape.ne1(), shape.ne2(), shape.ne3()),
        a);
  }

  /** a with zeros after its elements along each dimension. F32. */
  default Tensor pad(Tensor a, int p0, int p1, int p2, int p3) {
    Check.type("pad", "a", a, Type.F32);
    Check.rows("pad", "a", a);
    if (p0 < 0 || p1 < 0 || p2 < 0 || p3 < 0) {
      throw Check.bad("pad", "padding is not negative: %d, %d, %d, %d", p0, p1, p2, p3);
    }
    Check.tensor(Type.F32, new Shape(a.ne(0) + p0, a.ne(1) + p1, a.ne(2) + p2, a.ne(3) + p3));
    return Make.one(this, ctx -> ggml_h.ggml_pad(ctx, a.handle(), p0, p1, p2, p3), a);
  }

  /**
   * Rows of a by their indices: for a [K, N, p, q] and ids I32 [M, p, q] gives [K, M, p, q], F32
   * or, for an I32 a, I32. An index of an input that is not 0 to N - 1 is refused when the graph is
   * computed; where a node computes such an index, ggml ends the process.
   *
   * @param a F32, F16, BF16, I32 or quantised
   */
  default Tensor getRows(Tensor a, Tensor ids) {
    boolean known =
        switch (a.type()) {
          case F32, F16, BF16, I32 -> true;
          default -> a.type().isQuantized() && a.type() != Type.Q8_1 && a.type() != Type.Q8_K;
        };
    if (!known) {
      throw Check.bad("getRows", "a is %s, its type must be F32, F16, BF16, I32 or quantised", a);
    }
    Check.rows("getRows", "a", a);
    Check.type("getRows", "ids", ids, Type.I32);
    if (a.ne(2) != ids.ne(1) || a.ne(3) != ids.ne(2) || ids.ne(3) != 1) {
      throw Check.bad(
          "getRows", "ids %s do not fit %s: dimension i + 1 of both must agree", ids, a);
    }
    return Make.one(this, ctx -> ggml_h.ggml_get_rows(ctx, a.handle(), ids.handle()), a, ids);
  }

  /**
   * Writes rows into a by their indices: rows [K, M, p, q] of b go to a [K, N, p, q] at ids I64 or
   * I32 [M, a divisor of p, a divisor of q]. The result looks at a. Indices are refused as in
   * {@link #getRows}.
   *
   * @param a F32, F16, BF16 or quantised
   * @param b F32
   */
  default Tensor setRows(Tensor a, Tensor b, Tensor ids) {
    Check.type("setRows", "b", b, Type.F32);
    Check.type("setRows", "ids", ids, Type.I64, Type.I32);
    Check.rows("setRows", "a", a);
    Check.rows("setRows", "b", b);
    if (!a.type().isQuantized()) {
      Check.type("setRows", "a", a, Type.F32, Type.F16, Type.BF16);
    }
    if (a.ne(0) != b.ne(0) || a.ne(2) != b.ne(2) || a.ne(3) != b.ne(3)) {
      throw Check.bad("setRows", "rows of %s do not fit into %s", b, a);
    }
    if (b.ne(1) != ids.ne(0)
        || b.ne(2) % ids.ne(1) != 0
        || b.ne(3) % ids.ne(2) != 0
        || ids.ne(3) != 1) {
      throw Check.bad("setRows", "ids %s do not fit rows %s", ids, b);
    }
    return Make.one(
        this, ctx -> ggml_h.ggml_set_rows(ctx, a.handle(), b.handle(), ids.handle()), a, b, ids);
  }

  private static void repeatable(Tensor a, Shape shape) {
    Check.type("repeat", "a", a, Type.F32, Type.F16, Type.BF16, Type.I32, Type.I16);
    Check.rows("repeat", "a", a);
    Check.repeatable("repeat", a, shape);
  }
}
