package org.ggmlext;

import java.lang.foreign.MemorySegment;
import org.ggmlext.bindings.ggml_h;
import org.jspecify.annotations.Nullable;

/**
 * What attention is made of, besides products and softmax.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface AttentionOps permits Context {
  /**
   * Rotates pairs of elements by angles that grow with the position.
   *
   * @param a F32 or F16 [row, heads, tokens, batch]
   * @param positions I32 [tokens]
   */
  default Tensor rope(Tensor a, Tensor positions, RopeParams params) {
    return rope(a, positions, null, params);
  }

  /**
   * As {@link #rope(Tensor, Tensor, RopeParams)}, with a divisor of each pair's frequency.
   *
   * @param factors F32 [at least dims / 2]; null: all 1
   */
  default Tensor rope(Tensor a, Tensor positions, @Nullable Tensor factors, RopeParams params) {
    rotatable("rope", a, positions, factors, params);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_rope_ext(
                ctx,
                a.handle(),
                positions.handle(),
                handle(factors),
                params.dims(),
                params.mode().value(),
                params.contextOfTraining(),
                params.base(),
                params.frequencyScale(),
                params.extFactor(),
                params.attentionFactor(),
                params.betaFast(),
                params.betaSlow()),
        sources(a, positions, factors));
  }

  /** As {@link #rope(Tensor, Tensor, Tensor, RopeParams)}, over a. */
  default Tensor ropeInplace(
      Tensor a, Tensor positions, @Nullable Tensor factors, RopeParams params) {
    rotatable("ropeInplace", a, positions, factors, params);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_rope_ext_inplace(
                ctx,
                a.handle(),
                positions.handle(),
                handle(factors),
                params.dims(),
                params.mode().value(),
                params.contextOfTraining(),
                params.base(),
                params.frequencyScale(),
                params.extFactor(),
                params.attentionFactor(),
                params.betaFast(),
                params.betaSlow()),
        sources(a, positions, factors));
  }

  /**
   * Attention without its matrix of weights in memory: softmax of q k^T * scale + slope * mask,
   * times v; slopes as in {@link NormOps#softMaxExt}.
   *
   * @param q F32 [row, tokens, heads, batch]
   * @param k [row, keys, heads of k, batch], F32, F16, BF16 or quantised
   * @param v [row of v, keys, heads of k, batch], not transposed, of k's type
   * @param mask F16 [keys, at least tokens, divisor of heads, divisor of batch], contiguous; null:
   *     none
   * @param maxBias 0, or with a mask positive
   * @param softcap bound of the scores by tanh; 0: none
   * @return F32 [row of v, heads, tokens, batch]
   */
  default Tensor flashAttnExt(
      Tensor q,
      Tensor k,
      Tensor v,
      @Nullable Tensor mask,
      float scale,
      float maxBias,
      float softcap) {
    attention(q, k, v);
    attentionMask(q, k, mask, maxBias);
    return Make.one(
        this,
        ctx ->
            ggml_h.ggml_flash_attn_ext(
                ctx, q.handle(), k.handle(), v.handle(), handle(mask), scale, maxBias, softcap),
        mask == null ? new Tensor[] {q, k, v} : new Tensor[] {q, k, v, mask});
  }

  private static MemorySegment handle(@Nullable Tensor tensor) {
    return tensor == null ? MemorySegment.NULL : tensor.handle();
  }

  private static Tensor[] sources(Tensor a, Tensor b, @Nullable Tensor c) {
    return c == null ? new Tensor[] {a, b} : new Tensor[] {a, b, c};
  }

  private static void rotatable(
      String op, Tensor a, Tensor positions, @Nullable Tensor factors, RopeParams params) {
    Check.type(op, "a", a, Type.F32, Type.F16);
    Check.rows(op, "a", a);
    Check.type(op, "positions", positions, Type.I32);
    Check.contiguous(op, "positions", positions);
    if (positions.shape().dims() != 1 || positions.ne(0) != a.ne(2)) {
      throw Check.bad(op, "%s needs positions [%d], not %s", a, a.ne(2), positions);
    }
    int dims = params.dims();
    if (dims < 2 || dims % 2 != 0 || dims > a.ne(0)) {
      throw Check.bad(op, "dims must be even and 2 to %d, not %d", a.ne(0), dims);
    }
    if (!(params.base() > 0)) {
      throw Check.bad(op, "the base must be positive, not %s", params.base());
    }
    if (factors != null) {
      Check.type(op, "factors", factors, Type.F32);
      Check.contiguous(op, "factors", factors);
      if (factors.ne(0) < dims / 2) {
        throw Check.bad(op, "%d dims need %d factors, not %s", dims, dims / 2, factors);
      }
    }
  }

  private static void attention(Tensor q, Tensor k, Tensor v) {
    String op = "flashAttnExt";
    Check.type(op, "q", q, Type.F32);
    boolean known =
        switch (k.type()) {
          case F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0 -> true;
          default -> false;
        };
    if (!known) {
      throw Check.bad(op, "k is %s, its type must be F32, F16, BF16, Q4_0 to Q5_1 or Q8_0", k);
    }
    Check.type(op, "v", v, k.type());
    Check.rows(op, "q", q);
    Check.rows(op, "k", k);
    Check.rows(op, "v", v);
    if (q.ne(0) != k.ne(0)) {
      throw Check.bad(op, "rows of q and k must have the same length: %s and %s", q, k);
    }
    if (k.ne(1) != v.ne(1) || k.ne(2) != v.ne(2) || k.ne(3) != v.ne(3)) {
      throw Check.bad(op, "k and v must agree in dimensions 1 to 3: %s and %s", k, v);
    }
    if (q.ne(2) % k.ne(2) != 0 || q.ne(3) != k.ne(3)) {
      throw Check.bad(op, "heads of q must be a multiple of k's, batches the same: %s, %s", q, k);
    }
  }

  private static void attentionMask(Tensor q, Tensor k, @Nullable Tensor mask, float maxBias) {
    String op = "flashAttnExt";
    if (!(maxBias >= 0) || (maxBias > 0 && mask == null)) {
      throw Check.bad(op, "maxBias is 0, or positive with a mask; not %s", maxBias);
    }
    if (mask == null) {
      return;
    }
    Check.type(op, "mask", mask, Type.F16);
    Check.contiguous(op, "mask", mask);
    if (mask.ne(0) != k.ne(1)
        || mask.ne(1) < q.ne(1)
        || q.ne(2) % mask.ne(2) != 0
        || q.ne(3) % mask.ne(3) != 0) {
      throw Check.bad(op, "a mask %s does not fit q %s and k %s", mask, q, k);
    }
  }
}
