package org.ggmlext;

import java.util.List;

/** How the operations, whose interfaces only {@link Context} implements, reach it. */
final class Make {
  private Make() {}

  /** Makes one tensor. */
  static Tensor one(Object context, NativeNode node, Tensor... from) {
    return several(context, 1, node, from);
  }

  /** Makes up to so many tensors and gives the last one. */
  static Tensor several(Object context, int tensors, NativeNode node, Tensor... from) {
    for (int i = 0; i < from.length; i++) {
      if (from[i] == null) {
        throw new NullPointerException("source " + i + " is null");
      }
    }
    return ((Context) context).nativeNode(tensors, List.of(from), node);
  }
}
