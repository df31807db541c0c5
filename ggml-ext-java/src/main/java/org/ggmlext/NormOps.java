package org.ggmlext;

import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_h;
import org.jspecify.annotations.Nullable;

/**
 * Normalisations of rows, and softmax. The methods named {@code ...Inplace} write their result over
 * their source.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface NormOps permits Context {
  /** Each row: (a - mean) / sqrt(variance + eps). F32. */
  default Tensor norm(Tensor a, float eps) {
    rows("norm", a, eps);
    return Make.one(this, ctx -> ggml_h.ggml_norm(ctx, a.handle(), eps), a);
  }

  /** As {@link #norm}, over a. */
  default Tensor normInplace(Tensor a, float eps) {
    rows("normInplace", a, eps);
    return Make.one(this, ctx -> ggml_h.ggml_norm_inplace(ctx, a.handle(), eps), a);
  }

  /** Each row: a / sqrt(mean of squares + eps). F32. */
  default Tensor rmsNorm(Tensor a, float eps) {
    rows("rmsNorm", a, eps);
    return Make.one(this, ctx -> ggml_h.ggml_rms_norm(ctx, a.handle(), eps), a);
  }

  /** As {@link #rmsNorm}, over a. */
  default Tensor rmsNormInplace(Tensor a, float eps) {
    rows("rmsNormInplace", a, eps);
    return Make.one(this, ctx -> ggml_h.ggml_rms_norm_inplace(ctx, a.handle(), eps), a);
  }

  /** Each row: a / max(sqrt(sum of squares), eps). F32. */
  default Tensor l2Norm(Tensor a, float eps) {
    rows("l2Norm", a, eps);
    return Make.one(this, ctx -> ggml_h.ggml_l2_norm(ctx, a.handle(), eps), a);
  }

  /** Groups of matrices (dimension 2), each as {@link #norm} over all its elements. F32. */
  default Tensor groupNorm(Tensor a, int groups, float eps) {
    rows("groupNorm", a, eps);
    if (groups < 1 || groups > a.ne(2)) {
      throw Check.bad("groupNorm", "%s has 1 to %d groups, not %d", a, a.ne(2), groups);
    }
    return Make.one(this, ctx -> ggml_h.ggml_group_norm(ctx, a.handle(), groups, eps), a);
  }

  /** Each row: e^a over its sum. F32, contiguous. */
  default Tensor softMax(Tensor a) {
    softMaxSource("softMax", a);
    return Make.one(this, ctx -> ggml_h.ggml_soft_max(ctx, a.handle()), a);
  }

  /** As {@link #softMax}, over a. */
  default Tensor softMaxInplace(Tensor a) {
    softMaxSource("softMaxInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_soft_max_inplace(ctx, a.handle()), a);
  }

  /**
   * Softmax of a * scale + slope * mask, row by row. The slope is 1, or with a positive maxBias
   * ALiBi's for the head, which is dimension 2.
   *
   * @param a F32, contiguous
   * @param mask F32 or F16, contiguous, [ne0, at least ne1, divisor of ne2, divisor of ne3]; null:
   *     none
   * @param maxBias 0, or with a mask positive
   */
  default Tensor softMaxExt(Tensor a, @Nullable Tensor mask, float scale, float maxBias) {
    masked("softMaxExt", a, mask, maxBias);
    return Make.one(
        this,
        ctx -> ggml_h.ggml_soft_max_ext(ctx, a.handle(), handle(mask), scale, maxBias),
        sources(a, mask));
  }

  /** As {@link #softMaxExt}, over a. */
  default Tensor softMaxExtInplace(Tensor a, @Nullable Tensor mask, float scale, float maxBias) {
    masked("softMaxExtInplace", a, mask, maxBias);
    return Make.one(
        this,
        ctx -> ggml_h.ggml_soft_max_ext_inplace(ctx, a.handle(), handle(mask), scale, maxBias),
        sources(a, mask));
  }

  /** a, with minus infinity where column is greater than row + past. F32, contiguous. */
  default Tensor diagMaskInf(Tensor a, int past) {
    maskable("diagMaskInf", a, past);
    return Make.one(this, ctx -> ggml_h.ggml_diag_mask_inf(ctx, a.handle(), past), a);
  }

  /** As {@link #diagMaskInf}, over a. */
  default Tensor diagMaskInfInplace(Tensor a, int past) {
    maskable("diagMaskInfInplace", a, past);
    return Make.one(this, ctx -> ggml_h.ggml_diag_mask_inf_inplace(ctx, a.handle(), past), a);
  }

  private static MemorySegment handle(@Nullable Tensor tensor) {
    return tensor == null ? MemorySegment.NULL : tensor.handle();
  }

  private static Tensor[] sources(Tensor a, @Nullable Tensor b) {
    return b == null ? new Tensor[] {a} : new Tensor[] {a, b};
  }

  private static void rows(String op, Tensor a, float eps) {
    Check.type(op, "a", a, Type.F32);
    Check.rows(op, "a", a);
    Check.epsilon(op, eps);
  }

  private static void softMaxSource(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32);
    Check.contiguous(op, "a", a);
    Check.rows(op, "a", a);
  }

  private static void masked(String op, Tensor a, @Nullable Tensor mask, float maxBias) {
    softMaxSource(op, a);
    if (!(maxBias >= 0) || (maxBias > 0 && mask == null)) {
      throw Check.bad(op, "maxBias is 0, or positive with a mask; not %s", maxBias);
    }
    if (mask == null) {
      return;
    }
    Check.type(op, "mask", mask, Type.F32, Type.F16);
    Check.contiguous(op, "mask", mask);
    if (mask.ne(0) != a.ne(0)
        || mask.ne(1) < a.ne(1)
        || a.ne(2) % mask.ne(2) != 0
        || a.ne(3) % mask.ne(3) != 0) {
      throw Check.bad(op, "a mask %s does not fit %s", mask, a);
    }
  }

  private static void maskable(String op, Tensor a, int past) {
    softMaxSource(op, a);
    if (past < 0) {
      throw Check.bad(op, "past must not be negative: %d", past);
    }
  }
}
