package org.ggmlext.benchmarks;

import java.util.Locale;
import org.ggmlext.ext.RowBody;
import org.ggmlext.vector.Norms;
import org.ggmlext.vector.RowKernels;
import org.ggmlext.vector.Rows;

/** What the compared kernels compute; {@code bench_kernels.c} holds the same in C. */
public enum Work {
  /** {@code y = x * 0.5 + 0.25}. */
  AFFINE(RowKernels.unary((x, xo, y, yo, n) -> Rows.scale(x, xo, y, yo, n, 0.5f, 0.25f))),

  /** {@code y = x / sqrt(mean(x^2) + 1e-6)}. */
  RMS_NORM(RowKernels.unary((x, xo, y, yo, n) -> Norms.rmsNorm(x, xo, y, yo, n, 1e-6f)));

  private final RowBody body;

  Work(RowBody body) {
    this.body = body;
  }

  /** The kernel in Java. */
  RowBody body() {
    return body;
  }

  /** The operator's name where its kernel is this author's. */
  String operator(Author author) {
    return kernel(author) + ".v1";
  }

  /** The kernel's name. */
  String kernel(Author author) {
    return ("bench." + name() + "." + author).toLowerCase(Locale.ROOT);
  }
}
