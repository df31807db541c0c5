package org.ggmlext.benchmarks;

/** The graph that kernels are compared in: a chain of nodes on one tensor. */
public enum Size {
  /** 32 bytes: next to nothing to compute, so that what a node costs shows. */
  TINY(8, 1, 512),
  /** Rows of 64 KiB. */
  ROWS(16384, 4, 32);

  private final long elements;
  private final long rows;
  private final int nodes;

  Size(long elements, long rows, int nodes) {
    this.elements = elements;
    this.rows = rows;
    this.nodes = nodes;
  }

  /** Elements of a row. */
  long elements() {
    return elements;
  }

  /** Rows of the tensor. */
  long rows() {
    return rows;
  }

  /** Nodes of the graph. */
  int nodes() {
    return nodes;
  }
}
