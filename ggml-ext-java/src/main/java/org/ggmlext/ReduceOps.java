package org.ggmlext;

import org.ggmlext.bindings.ggml_h;

/**
 * Operations that make one value of many, and that order values.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface ReduceOps permits Context {
  /** The sum of all elements: [1]. F32, F16 or BF16. */
  default Tensor sum(Tensor a) {
    Check.type("sum", "a", a, Type.F32, Type.F16, Type.BF16);
    Check.rows("sum", "a", a);
    return Make.one(this, ctx -> ggml_h.ggml_sum(ctx, a.handle()), a);
  }

  /** The sum of each row: [1, ne1, ne2, ne3]. F32. */
  default Tensor sumRows(Tensor a) {
    row("sumRows", a);
    return Make.one(this, ctx -> ggml_h.ggml_sum_rows(ctx, a.handle()), a);
  }

  /** The mean of each row: [1, ne1, ne2, ne3]. F32. */
  default Tensor mean(Tensor a) {
    row("mean", a);
    return Make.one(this, ctx -> ggml_h.ggml_mean(ctx, a.handle()), a);
  }

  /** In each row, the sums up to each element. F32. */
  default Tensor cumsum(Tensor a) {
    row("cumsum", a);
    return Make.one(this, ctx -> ggml_h.ggml_cumsum(ctx, a.handle()), a);
  }

  /** The index of each row's largest element: I32 [ne1]. F32 of at most two dimensions. */
  default Tensor argmax(Tensor a) {
    row("argmax", a);
    Check.contiguous("argmax", "a", a);
    if (a.shape().dims() > 2 || a.ne(0) > Integer.MAX_VALUE) {
      throw Check.bad("argmax", "a has at most two dimensions, not %s", a);
    }
    return Make.one(this, ctx -> ggml_h.ggml_argmax(ctx, a.handle()), a);
  }

  /** The indices that sort each row: I32 of a's shape. F32. */
  default Tensor argsort(Tensor a, SortOrder order) {
    row("argsort", a);
    if (a.ne(0) > Integer.MAX_VALUE) {
      throw Check.bad("argsort", "rows have at most %d elements, not %s", Integer.MAX_VALUE, a);
    }
    return Make.one(this, ctx -> ggml_h.ggml_argsort(ctx, a.handle(), order.ordinal()), a);
  }

  /** How {@link #argsort} orders. */
  enum SortOrder {
    /** The smallest first. */
    ASCENDING,
    /** The largest first. */
    DESCENDING
  }

  private static void row(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32);
    Check.rows(op, "a", a);
  }
}
