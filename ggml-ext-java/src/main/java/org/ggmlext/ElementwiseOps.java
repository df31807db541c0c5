package org.ggmlext;

import org.ggmlext.bindings.GgmlLookup;
import org.ggmlext.bindings.ggml_h;

/**
 * Operations on each element. The methods named {@code ...Inplace} write their result over their
 * first source; the others leave it as it is.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface ElementwiseOps permits Context {
  /**
   * a + b; b is repeated to a's shape. F32, or F16 or BF16 with the same or F32; the result is a's.
   */
  default Tensor add(Tensor a, Tensor b) {
    binary("add", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_add(ctx, a.handle(), b.handle()), a, b);
  }

  /** As {@link #add}, over a. */
  default Tensor addInplace(Tensor a, Tensor b) {
    binary("addInplace", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_add_inplace(ctx, a.handle(), b.handle()), a, b);
  }

  /** a - b; as {@link #add}. */
  default Tensor sub(Tensor a, Tensor b) {
    binary("sub", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_sub(ctx, a.handle(), b.handle()), a, b);
  }

  /** As {@link #sub}, over a. */
  default Tensor subInplace(Tensor a, Tensor b) {
    binary("subInplace", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_sub_inplace(ctx, a.handle(), b.handle()), a, b);
  }

  /** a * b, element by element; as {@link #add}. */
  default Tensor mul(Tensor a, Tensor b) {
    binary("mul", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_mul(ctx, a.handle(), b.handle()), a, b);
  }

  /** As {@link #mul}, over a. */
  default Tensor mulInplace(Tensor a, Tensor b) {
    binary("mulInplace", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_mul_inplace(ctx, a.handle(), b.handle()), a, b);
  }

  /** a / b; as {@link #add}. */
  default Tensor div(Tensor a, Tensor b) {
    binary("div", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_div(ctx, a.handle(), b.handle()), a, b);
  }

  /** As {@link #div}, over a. */
  default Tensor divInplace(Tensor a, Tensor b) {
    binary("divInplace", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_div_inplace(ctx, a.handle(), b.handle()), a, b);
  }

  /** a * factor; a is F32 and contiguous. */
  default Tensor scale(Tensor a, float factor) {
    scalable("scale", a);
    return Make.one(this, ctx -> ggml_h.ggml_scale(ctx, a.handle(), factor), a);
  }

  /** As {@link #scale}, over a. */
  default Tensor scaleInplace(Tensor a, float factor) {
    scalable("scaleInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_scale_inplace(ctx, a.handle(), factor), a);
  }

  /** a * factor + bias; a is F32 and contiguous. */
  default Tensor scaleBias(Tensor a, float factor, float bias) {
    scalable("scaleBias", a);
    return Make.one(this, ctx -> ggml_h.ggml_scale_bias(ctx, a.handle(), factor, bias), a);
  }

  /** a squared. F32, F16 or BF16. */
  default Tensor sqr(Tensor a) {
    unary("sqr", a);
    return Make.one(this, ctx -> ggml_h.ggml_sqr(ctx, a.handle()), a);
  }

  /** As {@link #sqr}, over a. */
  default Tensor sqrInplace(Tensor a) {
    unary("sqrInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_sqr_inplace(ctx, a.handle()), a);
  }

  /** The square root. F32, F16 or BF16. */
  default Tensor sqrt(Tensor a) {
    unary("sqrt", a);
    return Make.one(this, ctx -> ggml_h.ggml_sqrt(ctx, a.handle()), a);
  }

  /** As {@link #sqrt}, over a. */
  default Tensor sqrtInplace(Tensor a) {
    unary("sqrtInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_sqrt_inplace(ctx, a.handle()), a);
  }

  /** The natural logarithm. F32, F16 or BF16. */
  default Tensor log(Tensor a) {
    unary("log", a);
    return Make.one(this, ctx -> ggml_h.ggml_log(ctx, a.handle()), a);
  }

  /** e to the power of a. F32, F16 or BF16. */
  default Tensor exp(Tensor a) {
    unary("exp", a);
    return Make.one(this, ctx -> ggml_h.ggml_exp(ctx, a.handle()), a);
  }

  /** The sine. F32, F16 or BF16. */
  default Tensor sin(Tensor a) {
    unary("sin", a);
    return Make.one(this, ctx -> ggml_h.ggml_sin(ctx, a.handle()), a);
  }

  /** The cosine. F32, F16 or BF16. */
  default Tensor cos(Tensor a) {
    unary("cos", a);
    return Make.one(this, ctx -> ggml_h.ggml_cos(ctx, a.handle()), a);
  }

  /** The absolute value. F32, F16 or BF16. */
  default Tensor abs(Tensor a) {
    unary("abs", a);
    return Make.one(this, ctx -> ggml_h.ggml_abs(ctx, a.handle()), a);
  }

  /** -a. F32, F16 or BF16. */
  default Tensor neg(Tensor a) {
    unary("neg", a);
    return Make.one(this, ctx -> ggml_h.ggml_neg(ctx, a.handle()), a);
  }

  /** a, but at least min and at most max. F32 or F16. */
  default Tensor clamp(Tensor a, float min, float max) {
    clampable("clamp", a, min, max);
    // Before ggml had the form in place, its clamp was just that.
    boolean copies = GgmlLookup.GGML.find("ggml_clamp_inplace").isPresent();
    return Make.several(
        this,
        2,
        ctx ->
            ggml_h.ggml_clamp(
                ctx, copies ? a.handle() : ggml_h.ggml_dup(ctx, a.handle()), min, max),
        a);
  }

  private static void binary(String op, Tensor a, Tensor b) {
    Check.binaryTypes(op, a, b);
    Check.repeatable(op, b, a.shape());
    Check.rows(op, "a", a);
  }

  private static void unary(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32, Type.F16, Type.BF16);
    Check.evenRows(op, "a", a);
  }

  private static void scalable(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32);
    Check.contiguous(op, "a", a);
    Check.evenRows(op, "a", a);
    if (a.nb(2) != a.nb(1) * a.ne(1) || a.nb(3) != a.nb(2) * a.ne(2)) {
      throw Check.bad(op, "the rows of a, %s, must be evenly spaced: use cont() on it", a);
    }
  }

  private static void clampable(String op, Tensor a, float min, float max) {
    Check.type(op, "a", a, Type.F32, Type.F16);
    Check.evenRows(op, "a", a);
    if (!(min <= max)) {
      throw Check.bad(op, "min must not be more than max: %s and %s", min, max);
    }
  }
}
