package org.ggmlext.ext;

import org.ggmlext.bindings.ggml_ext_node;
import org.ggmlext.internal.callback.Raw;
import org.jspecify.annotations.Nullable;

/** A graph's node with the data of its tensors, while a kernel runs; valid during the call only. */
public final class NodeView {
  private final NodeInfo info;
  private final TensorView dst;
  private final @Nullable TensorView[] sources;

  NodeView(long struct, NodeInfo info, boolean onHost) {
    this.info = info;
    dst =
        new TensorView(Raw.getLong(struct + ggml_ext_node.dst$offset()), info.dst(), true, onHost);
    long array = Raw.getLong(struct + ggml_ext_node.src$offset());
    sources = new @Nullable TensorView[info.sourceCount()];
    for (int i = 0; i < sources.length; i++) {
      if (info.hasSrc(i)) {
        sources[i] = new TensorView(Raw.getLong(array + 8L * i), info.src(i), false, onHost);
      }
    }
  }

  void refresh() {
    dst.refresh();
    for (TensorView source : sources) {
      if (source != null) {
        source.refresh();
      }
    }
  }

  /** Operation, parameters and attributes. */
  public NodeInfo info() {
    return info;
  }

  /** The node's output. */
  public TensorView dst() {
    return dst;
  }

  /**
   * A source.
   *
   * @throws java.util.NoSuchElementException if the node has no such source
   */
  public TensorView src(int index) {
    if (index >= 0 && index < sources.length) {
      TensorView source = sources[index];
      if (source != null) {
        return source;
      }
    }
    info.src(index);
    throw new AssertionError("a source without a view");
  }

  /** Whether the node has a source of this number. */
  public boolean hasSrc(int index) {
    return info.hasSrc(index);
  }

  @Override
  public String toString() {
    return info.toString();
  }
}
