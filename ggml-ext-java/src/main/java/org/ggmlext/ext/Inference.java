package org.ggmlext.ext;

import java.util.List;

/** Says what an operator yields for given sources and attributes. */
@FunctionalInterface
public interface Inference<A extends Record> {
  /**
   * Gives the output's type and shape; the output is contiguous and owns its storage.
   *
   * @param sources metadata of the node's sources
   * @param attributes the node's attributes
   * @return type and shape of the output, in ggml order
   * @throws Exception refuses the sources; its message reaches whoever creates the node
   */
  OutputSpec infer(List<TensorInfo> sources, A attributes) throws Exception;
}
