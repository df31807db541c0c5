package org.ggmlext.ext;

/**
 * Where a step's nodes refer to a tensor.
 *
 * @param node number of the node within the step
 * @param src number of its source; for its output see {@link #output} and {@link #isOutput}
 */
public record Capture(int node, int src) {
  /** The output of a node: no number that arithmetic with the numbers of sources comes to. */
  private static final int DST = Integer.MIN_VALUE;

  /**
   * As above.
   *
   * @throws IllegalArgumentException if a number is negative
   */
  public Capture {
    if (node < 0 || (src < 0 && src != DST)) {
      throw new IllegalArgumentException(
          "node %d, source %d, expected numbers >= 0".formatted(node, src));
    }
  }

  /** The output of a node of the step. */
  public static Capture output(int node) {
    return new Capture(node, DST);
  }

  /** Whether this is the output of the node, not one of its sources. */
  public boolean isOutput() {
    return src == DST;
  }

  /** Such as {@code node 1, source 0} or {@code node 1, output}. */
  @Override
  public String toString() {
    return "node " + node + ", " + (isOutput() ? "output" : "source " + src);
  }
}
