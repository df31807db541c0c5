package org.ggmlext.internal.callback;

import org.jspecify.annotations.Nullable;

/**
 * The Java object behind a registered kernel or rule; arguments are addresses of C structs. Its
 * toString names it in messages.
 */
public interface KernelTarget {
  /** Null: yes; else why not. */
  @Nullable String supports(long node) throws Exception;

  /** Null: yes; else why not. */
  @Nullable String preferred(long node) throws Exception;

  /** Number of nodes matched from {@code first} on; 0 for none. */
  int match(long graph, int first) throws Exception;

  /** Reorders. */
  void optimize(long graph) throws Exception;

  /** Fills the {@code struct ggml_ext_prepared} but for its state, and gives the step. */
  StepTarget prepare(long params, long prepared) throws Exception;
}
