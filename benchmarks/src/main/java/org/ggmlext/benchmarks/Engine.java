package org.ggmlext.benchmarks;

/** What embeds sentences. */
public enum Engine {
  /** ONNX Runtime, F32, all its optimisations on. */
  ONNX,
  /** The MiniLM example on ggml alone. */
  GGML,
  /** The MiniLM example with its extensions in Java and C. */
  EXTENDED
}
