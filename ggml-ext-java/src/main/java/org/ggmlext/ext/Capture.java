package org.ggmlext.ext;

/**
 * Where a step's nodes refer to a tensor.
 *
 * @param node number of the node within the step
 * @param src number of its source, or -1 for its output
 */
public record Capture(int node, int src) {
  /** The output of a node. */
  static final int DST = -1;
}
