package org.ggmlext.benchmarks;

/** What embeds sentences. */
public enum Engine {
  /** ONNX Runtime, F32, all its optimisations on. */
  ONNX,
  /** The MiniLM example on ggml alone. */
  GGML,
  /** The MiniLM example with its extensions in Java and C. */
  EXTENDED,
  /** ONNX Runtime with the INT8 model of the same publisher, all its optimisations on. */
  ONNX_INT8,
  /** The MiniLM example with its extensions and dense layers in INT8. */
  INT8
}
