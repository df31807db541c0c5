package org.ggmlext.kit;

import java.util.List;
import org.ggmlext.Context;
import org.ggmlext.Tensor;

/** Makes the nodes that are checked. Called anew for each case. */
@FunctionalInterface
public interface GraphBuilder {
  /**
   * Makes nodes that lead from the inputs to an output.
   *
   * @param context where the nodes are made; it has room for 64 tensors
   * @param inputs they may be views with gaps, or results of other nodes
   * @return the output, computed by a node of {@code context}
   * @throws IllegalArgumentException if there is no such graph for these inputs; the case is
   *     reported as refused, with the message
   */
  Tensor build(Context context, List<Tensor> inputs);
}
