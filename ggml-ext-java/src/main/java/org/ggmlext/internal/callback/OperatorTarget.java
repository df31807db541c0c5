package org.ggmlext.internal.callback;

/** The Java object behind a registered operator. Its toString names it in messages. */
public interface OperatorTarget {
  /** Fills the {@code struct ggml_ext_output}. */
  void infer(int count, long sources, long attributes, long output) throws Exception;
}
