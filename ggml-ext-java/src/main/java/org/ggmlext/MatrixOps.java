package org.ggmlext;

import org.ggmlext.bindings.ggml_h;

/**
 * Products of matrices.
 *
 * <p>All throw {@link IllegalArgumentException} if shapes, strides or types do not fit, {@link
 * GgmlException} if the context is full, and {@link IllegalStateException} if the context, or that
 * of a source, is closed.
 */
public sealed interface MatrixOps permits Context {
  /**
   * b times the transposed a: for a [K, N, p, q] and b [K, M, P, Q] gives F32 [N, M, P, Q], element
   * (n, m) being the dot product of a's row n and b's row m. P is a multiple of p, Q of q.
   *
   * @param a F32, F16, BF16 or quantised, usually weights
   * @param b F32, or of a's type where that is F16 or BF16
   */
  default Tensor mulMat(Tensor a, Tensor b) {
    product("mulMat", a, b);
    if (a.ne(0) != b.ne(0)) {
      throw Check.bad("mulMat", "rows must have the same length: %s and %s", a, b);
    }
    broadcast("mulMat", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_mul_mat(ctx, a.handle(), b.handle()), a, b);
  }

  /**
   * For each column of b the products with those of a's matrices that ids names: for a [K, N, E], b
   * [K, m, T] and ids I32 [M, T] gives F32 [N, M, T]. M is a multiple of m. An id of an input that
   * is not 0 to E - 1 is refused when the graph is computed; where a node computes such an id, ggml
   * ends the process.
   */
  default Tensor mulMatId(Tensor a, Tensor b, Tensor ids) {
    product("mulMatId", a, b);
    Check.type("mulMatId", "ids", ids, Type.I32);
    Check.rows("mulMatId", "ids", ids);
    if (a.ne(3) != 1 || b.ne(3) != 1 || ids.ne(2) != 1 || ids.ne(3) != 1) {
      throw Check.bad(
          "mulMatId", "a and b have at most 3 dimensions, ids 2: %s, %s, %s", a, b, ids);
    }
    if (a.ne(0) != b.ne(0) || ids.ne(1) != b.ne(2) || ids.ne(0) % b.ne(1) != 0) {
      throw Check.bad("mulMatId", "%s, %s and ids %s do not fit", a, b, ids);
    }
    return Make.one(
        this, ctx -> ggml_h.ggml_mul_mat_id(ctx, a.handle(), b.handle(), ids.handle()), a, b, ids);
  }

  /**
   * The outer product: for F32 a [N, K, p, q] and b [M, K, P, Q] gives F32 [N, M, P, Q], the sum
   * over k of a's (n, k) times b's (m, k). P is a multiple of p, Q of q.
   */
  default Tensor outProd(Tensor a, Tensor b) {
    Check.type("outProd", "a", a, Type.F32);
    Check.type("outProd", "b", b, Type.F32);
    Check.rows("outProd", "a", a);
    if (a.isTransposed()) {
      throw Check.bad("outProd", "a, %s, must not be transposed: use cont() on it", a);
    }
    if (a.ne(1) != b.ne(1)) {
      throw Check.bad("outProd", "the number of rows must be the same: %s and %s", a, b);
    }
    broadcast("outProd", a, b);
    return Make.one(this, ctx -> ggml_h.ggml_out_prod(ctx, a.handle(), b.handle()), a, b);
  }

  private static void product(String op, Tensor a, Tensor b) {
    Type type = a.type();
    boolean known =
        type == Type.F32
            || type == Type.F16
            || type == Type.BF16
            || (type.isQuantized() && type != Type.Q8_1 && type != Type.Q8_K);
    if (!known) {
      throw Check.bad(op, "a is %s, its type must be F32, F16, BF16 or quantised", a);
    }
    boolean half = type == Type.F16 || type == Type.BF16;
    if (b.type() != Type.F32 && !(half && b.type() == type)) {
      throw Check.bad(op, "b is %s, its type must be F32%s", b, half ? " or " + type : "");
    }
    Check.rows(op, "a", a);
    Check.rows(op, "b", b);
    if (a.isTransposed()) {
      throw Check.bad(op, "a, %s, must not be transposed: use cont() on it", a);
    }
  }

  private static void broadcast(String op, Tensor a, Tensor b) {
    if (b.ne(2) % a.ne(2) != 0 || b.ne(3) % a.ne(3) != 0) {
      throw Check.bad(op, "dimensions 2 and 3 of b must be multiples of a's: %s and %s", a, b);
    }
  }
}
