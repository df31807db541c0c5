package org.ggmlext.benchmarks;

/** Who wrote a kernel, and who registered it. */
public enum Author {
  /** Operator and kernel in Java, on the Vector API. */
  JAVA,
  /** Operator in Java, kernel in C, registered by Java as a kernel library. */
  C,
  /** Operator and the same kernel in C, registered by C. */
  DIRECT
}
