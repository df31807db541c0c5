package org.ggmlext;

import java.util.HashMap;
import java.util.Map;
import org.ggmlext.bindings.ggml_h;
import org.ggmlext.internal.LongList;
import org.ggmlext.internal.Native;

/** Leaves that need memory though no node that is computed reads them, unless through a view. */
final class UnreadLeaves {
  private UnreadLeaves() {}

  /**
   * The leaves without memory, inputs left out; with each its first reader through a view, or 0.
   */
  static Map<Long, Long> of(Graph graph) {
    LongList members = graph.snapshot();
    Map<Long, Long> leaves = new HashMap<>();
    for (int i = 0; i < members.size(); i++) {
      if (isHomeless(members.get(i))) {
        leaves.put(members.get(i), 0L);
      }
    }
    for (int i = 0; !leaves.isEmpty() && i < members.size(); i++) {
      if (!isView(Native.op(members.get(i)))) {
        read(members.get(i), leaves);
      }
    }
    return leaves;
  }

  private static boolean isHomeless(long tensor) {
    return Native.op(tensor) == ggml_h.GGML_OP_NONE()
        && (Native.flags(tensor)
                & (ggml_h.GGML_TENSOR_FLAG_INPUT() | ggml_h.GGML_TENSOR_FLAG_PARAM()))
            == 0
        && !TensorData.isAllocated(tensor);
  }

  private static void read(long node, Map<Long, Long> leaves) {
    for (int i = 0; i < Native.MAX_SRC; i++) {
      long source = Native.src(node, i);
      if (source != 0) {
        leaves.remove(source);
        leaves.computeIfPresent(
            Native.viewSrc(source), (_, reader) -> reader == 0 ? Long.valueOf(node) : reader);
      }
    }
  }

  private static boolean isView(int op) {
    return op == ggml_h.GGML_OP_VIEW()
        || op == ggml_h.GGML_OP_RESHAPE()
        || op == ggml_h.GGML_OP_PERMUTE()
        || op == ggml_h.GGML_OP_TRANSPOSE();
  }
}
