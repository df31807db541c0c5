package org.ggmlext.internal.callback;

/**
 * The Java object behind one planned step; {@code params} is a {@code struct ggml_ext_exec_params}.
 */
public interface StepTarget {
  /** One task of one phase. */
  void run(long params, int phase, int ith, int nth) throws Exception;

  /** The whole step. */
  void execute(long params) throws Exception;

  /** Once, at its end. */
  void destroy() throws Exception;
}
