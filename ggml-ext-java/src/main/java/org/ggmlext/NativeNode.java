package org.ggmlext;

import java.lang.foreign.MemorySegment;

/** Makes a tensor by a call of a C function of ggml, or of a library that builds on it. */
@FunctionalInterface
public interface NativeNode {
  /**
   * Makes the tensor.
   *
   * @param context the {@code ggml_context *} to make it in
   * @return the {@code ggml_tensor *}; NULL if it cannot be made
   */
  MemorySegment make(MemorySegment context);
}
