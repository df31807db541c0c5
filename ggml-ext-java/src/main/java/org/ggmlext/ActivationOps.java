package org.ggmlext;

import org.ggmlext.bindings.ggml_h;

/**
 * Activation functions, element by element, and gated ones. The methods named {@code ...Inplace}
 * write their result over their source.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface ActivationOps permits Context {
  /** max(a, 0). F32, F16 or BF16. */
  default Tensor relu(Tensor a) {
    simple("relu", a);
    return Make.one(this, ctx -> ggml_h.ggml_relu(ctx, a.handle()), a);
  }

  /** As {@link #relu}, over a. */
  default Tensor reluInplace(Tensor a) {
    simple("reluInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_relu_inplace(ctx, a.handle()), a);
  }

  /** 1 / (1 + e^-a). F32, F16 or BF16. */
  default Tensor sigmoid(Tensor a) {
    simple("sigmoid", a);
    return Make.one(this, ctx -> ggml_h.ggml_sigmoid(ctx, a.handle()), a);
  }

  /** As {@link #sigmoid}, over a. */
  default Tensor sigmoidInplace(Tensor a) {
    simple("sigmoidInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_sigmoid_inplace(ctx, a.handle()), a);
  }

  /** The hyperbolic tangent. F32, F16 or BF16. */
  default Tensor tanh(Tensor a) {
    simple("tanh", a);
    return Make.one(this, ctx -> ggml_h.ggml_tanh(ctx, a.handle()), a);
  }

  /** As {@link #tanh}, over a. */
  default Tensor tanhInplace(Tensor a) {
    simple("tanhInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_tanh_inplace(ctx, a.handle()), a);
  }

  /**
   * GELU by its tanh approximation, which ggml takes from a table of half-precision values. F32,
   * F16.
   */
  default Tensor gelu(Tensor a) {
    table("gelu", a);
    return Make.one(this, ctx -> ggml_h.ggml_gelu(ctx, a.handle()), a);
  }

  /** As {@link #gelu}, over a. */
  default Tensor geluInplace(Tensor a) {
    table("geluInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_gelu_inplace(ctx, a.handle()), a);
  }

  /** GELU by the error function: a * (1 + erf(a / sqrt 2)) / 2. F32 or F16. */
  default Tensor geluErf(Tensor a) {
    table("geluErf", a);
    return Make.one(this, ctx -> ggml_h.ggml_gelu_erf(ctx, a.handle()), a);
  }

  /** As {@link #geluErf}, over a. */
  default Tensor geluErfInplace(Tensor a) {
    table("geluErfInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_gelu_erf_inplace(ctx, a.handle()), a);
  }

  /** a / (1 + e^(-1.702 a)), from a table of half-precision values. F32 or F16. */
  default Tensor geluQuick(Tensor a) {
    table("geluQuick", a);
    return Make.one(this, ctx -> ggml_h.ggml_gelu_quick(ctx, a.handle()), a);
  }

  /** a / (1 + e^-a). F32 or F16. */
  default Tensor silu(Tensor a) {
    table("silu", a);
    return Make.one(this, ctx -> ggml_h.ggml_silu(ctx, a.handle()), a);
  }

  /** As {@link #silu}, over a. */
  default Tensor siluInplace(Tensor a) {
    table("siluInplace", a);
    return Make.one(this, ctx -> ggml_h.ggml_silu_inplace(ctx, a.handle()), a);
  }

  /** a where it is positive, else a * slope. F32 or F16. */
  default Tensor leakyRelu(Tensor a, float slope) {
    table("leakyRelu", a);
    return Make.one(this, ctx -> ggml_h.ggml_leaky_relu(ctx, a.handle(), slope, false), a);
  }

  /** silu(first half of each row) * second half; the result's rows are half as long. F32 or F16. */
  default Tensor swiglu(Tensor a) {
    halves("swiglu", a);
    return Make.one(this, ctx -> ggml_h.ggml_swiglu(ctx, a.handle()), a);
  }

  /** silu(a) * b. F32 or F16, both the same. */
  default Tensor swiglu(Tensor a, Tensor b) {
    pair("swiglu", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_swiglu_split(ctx, a.handle(), b.handle()), a, b);
  }

  /** gelu(first half of each row) * second half; the result's rows are half as long. F32 or F16. */
  default Tensor geglu(Tensor a) {
    halves("geglu", a);
    return Make.one(this, ctx -> ggml_h.ggml_geglu(ctx, a.handle()), a);
  }

  /** gelu(a) * b. F32 or F16, both the same. */
  default Tensor geglu(Tensor a, Tensor b) {
    pair("geglu", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_geglu_split(ctx, a.handle(), b.handle()), a, b);
  }

  /** relu(first half of each row) * second half; the result's rows are half as long. F32 or F16. */
  default Tensor reglu(Tensor a) {
    halves("reglu", a);
    return Make.one(this, ctx -> ggml_h.ggml_reglu(ctx, a.handle()), a);
  }

  /** relu(a) * b. F32 or F16, both the same. */
  default Tensor reglu(Tensor a, Tensor b) {
    pair("reglu", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_reglu_split(ctx, a.handle(), b.handle()), a, b);
  }

  private static void simple(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32, Type.F16, Type.BF16);
    Check.evenRows(op, "a", a);
  }

  private static void table(String op, Tensor a) {
    Check.type(op, "a", a, Type.F32, Type.F16);
    Check.evenRows(op, "a", a);
  }

  private static void halves(String op, Tensor a) {
    table(op, a);
    if (a.ne(0) % 2 != 0) {
      throw Check.bad(op, "rows of %s have no two halves", a);
    }
  }

  private static void pair(String op, Tensor a, Tensor b) {
    table(op, a);
    Check.type(op, "b", b, a.type());
    Check.evenRows(op, "b", b);
    Check.sameShape(op, a, b);
  }
}
