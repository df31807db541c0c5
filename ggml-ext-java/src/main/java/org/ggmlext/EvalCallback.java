package org.ggmlext;

/**
 * Watches the nodes of a scheduler's computes. Called on the thread that computes. What it throws
 * stops the compute and becomes the cause of the {@link GgmlException}.
 */
public interface EvalCallback {
  /** Whether this node is to be shown once it is computed; asked before. */
  boolean wants(Tensor node);

  /**
   * Shows a node that was computed; its data can be read.
   *
   * @return false to stop the compute
   */
  boolean computed(Tensor node);
}
